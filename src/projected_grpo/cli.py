"""The command `projected-grpo`. Bad input is one line on standard error and exit code 2."""

import argparse
import signal
import sys

from projected_grpo.errors import UserError


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return its exit code."""
    parser = argparse.ArgumentParser(prog="projected-grpo", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    # Imported here, not above: each brings its own libraries.
    from projected_grpo.cells import schemas
    from projected_grpo.environment import grade_cli
    from projected_grpo.method import pairs_cli
    from projected_grpo.stages import export_cli

    grade_cli.add_parser(commands)
    pairs_cli.add_parser(commands)
    export_cli.add_parser(commands)
    schemas.add_parser(commands)
    signal.signal(signal.SIGTERM, _terminate)
    try:
        args = parser.parse_args(arguments)
        args.run(args)
    except UserError as error:
        print(f"projected-grpo: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def _terminate(number: int, frame: object) -> None:
    """End as an exception does: children end, temporary files go."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
