"""The command `projected-grpo`. Bad input is one line on standard error and exit code 2."""

import argparse
import os
import signal
import sys
from importlib.metadata import version

from projected_grpo.commands import canonical, chat, examples, export, grade, pairs, schemas
from projected_grpo.errors import UserError
from projected_grpo.integrations import basis_command


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return its exit code.

    A command needs what `pip install projected-grpo[pipeline]` brings, `grade` alone does with less.
    """
    parser = argparse.ArgumentParser(prog="projected-grpo", description=__doc__.splitlines()[0])
    parser.add_argument("--version", action="version", version=version("projected-grpo"))
    commands = parser.add_subparsers(metavar="COMMAND", required=True, dest="command")
    for command in (grade, pairs, basis_command, canonical, export, chat, examples, schemas):
        command.add_parser(commands)
    # As an exception does: children end, temporary files go.
    for ending in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(ending) is not signal.SIG_IGN:  # as under nohup
            signal.signal(ending, lambda number, _: sys.exit(128 + number))
    try:
        args = parser.parse_args(arguments)
        args.run(args)
        return 0
    except UserError as error:
        said = str(error)
    except ModuleNotFoundError as error:
        if (error.name or __package__).split(".")[0] == __package__:
            raise
        said = (
            f"{args.command} needs {error.name}, which is not installed here: "
            "pip install 'projected-grpo[pipeline]', or use the .venv that ./snakemake makes"
        )
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:  # a file or folder that cannot be read or written
        if error.filename is None:
            raise
        said = f"{error.filename}: {error.strerror}"
    except KeyboardInterrupt:
        return 130
    print(f"projected-grpo: {said}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
