"""Snakemake's own entry, with the command line read as it was meant and the jobs' own words kept out of the terminal.

Snakemake's default limit of 100 jobs a second makes its scheduler look at all ready jobs again a second after every
look, besides after every finished job; so looks multiply, and after a hundred jobs they fill a core. The limit is off
unless it is typed.

Snakemake's temporary folder lies in `.snakemake/tmp`, where the next start finds and removes what a killed one left.

A run that ends removes its own lock. Snakemake's own way removes those of all that still run in the folder, and a third
call could then make what the second is making.
"""

import json
import os
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

from snakemake import cli, script, workflow
from snakemake.exceptions import CliException, WorkflowError
from snakemake.persistence.file import FilePersistence

from projected_grpo.errors import UserError
from projected_grpo.wrapper import command_line
from projected_grpo.wrapper.run import starts_jobs

get_argument_parser = cli.get_argument_parser

TEMPORARY = Path(".snakemake", "tmp").absolute()
# How jobs end.
STOPPED = {code for number in (signal.SIGINT, signal.SIGTERM) for code in (-number, 128 + number)}


def main(typed_words: list[str]) -> None:
    """Run Snakemake; ends as it does, by SystemExit."""
    if shlex.quote(sys.executable) != sys.executable:
        # Snakemake writes it unquoted into shell commands; .venv/bin comes first on PATH.
        sys.executable = "python"
    try:
        arguments = read(typed_words)
    except UserError as error:
        raise SystemExit(f"error: {error}") from None
    if starts_jobs(arguments):
        FilePersistence._delete_locks = delete_own_locks
    if "terminal" in arguments:
        script.ScriptBase._execute_cmd = quiet(script.ScriptBase._execute_cmd)
        cli.print = terse
    sys.argv = ["snakemake", *arguments]
    TEMPORARY.mkdir(parents=True, exist_ok=True)
    own = partial(tempfile.TemporaryDirectory, dir=TEMPORARY)
    workflow.tempfile = SimpleNamespace(**{**vars(tempfile), "TemporaryDirectory": own})
    cli.get_argument_parser = unlimited
    signal.signal(signal.SIGINT, interrupt_once)
    began = time.monotonic()
    try:
        cli.main()
    except SystemExit as end:
        if not end.code and starts_jobs(arguments):
            answers(json.loads(os.environ.get("PGRPO_ASKED", "[]")), time.monotonic() - began)
        raise


def read(words: list[str]) -> list[str]:
    """Return the arguments for Snakemake; where its own start will say what is wrong, they are little changed.

    Raises UserError on what it would answer with a traceback.
    """
    parser = get_argument_parser()
    parser.error = refuse
    command_line.check_options(words, parser)
    arguments = command_line.free_targets(words, parser)
    try:
        files = parser.parse_args(arguments).configfile or []
        arguments = command_line.find_configs(arguments, files, os.environ.get("PGRPO_TYPED_IN", "."))
        typed = parser.parse_args(arguments)
    except CliException:
        return arguments
    except WorkflowError as error:  # of a value that is none, which Snakemake's own start does not catch
        raise UserError(str(error)) from error
    command_line.check_profile(typed.workflow_profile)
    command_line.check_config(typed.config or [])
    command_line.tell_seeds(typed.config or [])
    arguments = command_line.fit_cores(arguments, typed, len(os.sched_getaffinity(0)))
    arguments = command_line.add_logger(arguments, typed)
    # For the Snakefile, which knows what there is, and says which files that is as PGRPO_ASKED.
    os.environ["PGRPO_TARGETS"] = json.dumps(list(typed.targets))
    named = [*(typed.forcerun or ()), *(typed.until or ()), *(typed.omit_from or ())]
    os.environ["PGRPO_NAMED"] = json.dumps(sorted(named))
    own = [command_line.CONFIG] if os.path.isfile(command_line.CONFIG) else []
    command_line.check_files([*own, *(typed.configfile or [])])
    return arguments


def refuse(problem: str) -> NoReturn:
    """Raise UserError; in place of `ArgumentParser.error`, which prints 200 lines of usage first."""
    raise UserError(problem)


def quiet(execute: Callable) -> Callable:
    """Return Snakemake's `ScriptBase._execute_cmd` with what a job prints put at the end of its log.

    Libraries warn and draw bars on a job's standard error; people who wait for twenty jobs want none of it. What a
    failed job printed is shown, too; one that a signal ended has nothing to tell.
    """

    def executed(self: Any, cmd: str, **more: Any) -> Any:
        handle, path = tempfile.mkstemp(dir=TEMPORARY)
        os.close(handle)
        try:
            # `exec`: a shell in between would die of a signal before the job that it waits for.
            return execute(self, f"exec {cmd} > {{printed:q}} 2>&1", printed=path, **more)
        except BaseException as error:
            if getattr(error, "returncode", None) not in STOPPED:
                print(Path(path).read_text(errors="replace"), end="", file=sys.stderr)
            raise
        finally:
            printed = Path(path).read_text(errors="replace")
            if printed and self.log:
                with suppress(OSError), open(self.log[0], "a") as log:
                    log.write(f"--- printed by the job ---\n{printed}")
            os.unlink(path)

    return executed


def delete_own_locks(persistence: Any) -> None:
    """Remove the lock files of one run; in place of `FilePersistence._delete_locks`."""
    for file in persistence._lockfile.values():
        Path(file).unlink(missing_ok=True)
    persistence._lockfile.clear()


def terse(*said: Any, **how: Any) -> None:
    """Print, but not Snakemake's line on the profile that every call here has."""
    if not str(said[0]).endswith("for setting default command line arguments."):
        print(*said, **how)


def interrupt_once(number: int, _frame: object) -> None:
    """Raise KeyboardInterrupt at the first SIGINT alone: a second one would break off Snakemake's clean-up."""
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def unlimited(*args: Any, **kwargs: Any) -> Any:
    """Return Snakemake's parser without its default limit of jobs a second."""
    parser = get_argument_parser(*args, **kwargs)
    parser.set_defaults(max_jobs_per_timespan=None)
    return parser


def answers(targets: list[str], seconds: float) -> None:
    """Say what the pages that were asked for answer, where they lie, and how long it took."""
    from projected_grpo.pages import terminal

    for file in map(Path, targets):
        with suppress(UserError):
            if file.suffix == ".md":
                print("", *terminal.lines(file), sep="\n", file=sys.stderr)
        if file.exists():
            figures = file.parent / "figures" / file.stem
            print(f"{file}{f', figures in {figures}' if figures.is_dir() else ''}", file=sys.stderr)
    print(f"made in {timedelta(seconds=round(seconds))}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
