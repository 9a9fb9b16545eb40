"""One run of Snakemake as a child: what it is given, how it is stopped, what a killed one has left.

Every run holds a shared lock on `.snakemake/running` for its lifetime, and whoever builds the environment holds it
alone: two starts at once are safe, and a run that can get the lock alone knows that no other lives, so it clears what a
killed one left (Snakemake's lock, jobs without a parent). SIGINT, SIGTERM and SIGHUP end a run within five seconds: its
jobs get SIGTERM, to save a checkpoint, Snakemake an interrupt, and what is still there at the end is killed.

The current folder is the repository's root.
"""

import ctypes
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

RUN = "PGRPO_RUN"  # in the environment of every process of a run: the root that it belongs to
CALL = "PGRPO_CALL"  # and the call of the wrapper that it is of
# Torch's buffers stay in the process: else each step returns them to the kernel and faults them in again, 4 of 5 page
# faults and 5% of the CPU time of a run of the small model. 32 MiB is the most that glibc takes for the first.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(1 << 30)}
GRACE = 4.5  # seconds from a signal to SIGKILL
DIES_WITH_ITS_PARENT = 1  # PR_SET_PDEATHSIG
# Such calls start no job; they leave what a killed run left as it is.
READ_ONLY = re.compile(
    r"-[a-zA-Z]*n[a-zA-Z]*|-[hlvSD]|--(dry-?run|nolock|unlock|lint|dag|rulegraph|filegraph|d3dag|summary"
    r"|detailed-summary|list.*|help|version|report|archive|print-compilation)(=.*)?"
)


class Stopped(Exception):
    """A signal asked for the end; `args` is (its number,)."""


def starts_jobs(arguments: list[str]) -> bool:
    """Return whether a call makes something, and does not only show what there is."""
    return not any(READ_ONLY.fullmatch(word) for word in arguments)


def run(arguments: list[str], lock: int, typed_in: str) -> int:
    """Run Snakemake to its end and return its exit status, 128 + n after signal n.

    lock: an open `.snakemake/running`; typed_in: the folder where the call was typed; config files may lie there, too.
    """
    if starts_jobs(arguments):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            clear()
        except BlockingIOError:
            pass  # another run lives
    fcntl.flock(lock, fcntl.LOCK_SH)
    call = f"{os.getpid()}.{time.monotonic_ns()}"
    prctl = ctypes.CDLL(None).prctl
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def on_signal(number: int, _frame: object) -> None:
        for other in signals:
            signal.signal(other, signal.SIG_IGN)
        raise Stopped(number)

    snakemake = subprocess.Popen(
        [sys.executable, "-P", "-m", "projected_grpo.wrapper.entry", *arguments],
        env=environment() | {CALL: call, "PGRPO_TYPED_IN": typed_in},
        pass_fds=[lock],  # held as long as either of the two lives
        # Without us it would run on, deaf to signals.
        preexec_fn=lambda: prctl(DIES_WITH_ITS_PARENT, signal.SIGKILL),
    )
    try:
        for number in signals:
            signal.signal(number, on_signal)
        status = snakemake.wait()
    except Stopped as stopped:
        stop(snakemake, call)
        say("stopped; finished steps and checkpoints of training are kept, what else was under way is not")
        say("type the same command to go on")
        return 128 + stopped.args[0]
    return status if status >= 0 else 128 - status


def environment() -> dict[str, str]:
    """Return the environment of a run's processes."""
    environ = {**KEEP_MEMORY, **os.environ, **homes(), RUN: os.getcwd()}
    environ["PYTHONPATH"] = os.path.abspath("src")  # for jobs in a conda environment, which lacks the package
    path = [os.path.dirname(sys.executable), environ.get("PATH", os.defpath), os.path.abspath("envs/bin")]
    return environ | {"PATH": os.pathsep.join(path)}


def homes() -> dict[str, str]:
    """Return where caches go where the home folder takes none: into this one; hub models stay where they are."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        if os.access(cache, os.W_OK):
            return {}
    except OSError:
        pass
    own = {name: os.path.abspath(".snakemake/home") for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME")}
    hub = cache / "huggingface"
    return own | ({"HF_HOME": str(hub)} if hub.is_dir() and "HF_HOME" not in os.environ else {})


def stop(snakemake: subprocess.Popen, call: str) -> None:
    """End a call's run within GRACE seconds: SIGTERM to jobs, SIGINT to Snakemake, SIGKILL to what remains."""
    snakemake.send_signal(signal.SIGINT)  # heard once, also where Ctrl-C has reached it already
    from projected_grpo.wrapper import processes  # here, as most calls need it never

    processes.end(CALL, call, GRACE, told=snakemake.pid)
    snakemake.wait()


def clear() -> None:
    """End jobs that outlived a killed run, and take away the lock it left in `.snakemake/locks`."""
    from projected_grpo.wrapper import processes

    if ended := processes.end(RUN, os.getcwd(), GRACE):
        say(f"ended {ended} processes of a run that was killed")
    shutil.rmtree(".snakemake/tmp", ignore_errors=True)
    locks = Path(".snakemake/locks")
    if locks.is_dir() and any(locks.iterdir()) and not processes.plain_run(Path.cwd()):
        shutil.rmtree(locks)
        say("took away the lock of a run that was killed")


def say(text: str) -> None:
    """Print one line of the wrapper's own."""
    print(f"snakemake: {text}", file=sys.stderr, flush=True)
