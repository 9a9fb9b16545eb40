"""The processes of a run, by a variable of their environment, which children inherit whatever they do."""

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil


def marked(variable: str, value: str) -> list[psutil.Process]:
    """Return the living processes on this machine, this one aside, that have a variable in their environment."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):  # ended meanwhile, or another user's
            if process.environ().get(variable) == value and process.pid != os.getpid():
                found.append(process)
    return found


def end(variable: str, value: str, seconds: float, told: int | None = None) -> int:
    """End all marked processes by SIGTERM, after `seconds` by SIGKILL; return how many there were.

    told: the id of one that knows already that it shall end.
    """
    deadline = time.monotonic() + seconds
    first = marked(variable, value)
    for process in first:
        if process.pid != told:
            with suppress(psutil.NoSuchProcess):
                process.terminate()
    while (left := marked(variable, value)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    return len(first)


def plain_run(folder: Path) -> bool:
    """Return whether a Snakemake that the wrapper did not start works in a folder."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            program = Path(process.exe()).name
            if executes_snakemake(process.cmdline(), program) and Path(process.cwd()) == folder:
                return True
    return False


def executes_snakemake(words: Sequence[str], program: str) -> bool:
    """Return whether a process is Python with Snakemake as its script or module, whatever else has that word."""
    if not program.startswith("python"):
        return False
    rest = iter(words[1:])
    for word in rest:
        if word == "-m":
            return next(rest, "").split(".")[0] == "snakemake"
        if word in ("-W", "-X"):
            next(rest, "")
        elif not word.startswith("-") or word in ("-", "-c"):
            return Path(word).name == "snakemake"
    return False
