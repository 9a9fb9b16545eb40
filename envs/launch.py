"""Make the environment if need be, then run Snakemake in it: `./snakemake SNAKEMAKE-ARGUMENTS`.

Paths and targets are relative to the repository root, config files also to where the call is typed. Every run
holds a shared lock on `.snakemake/running` for its lifetime, and whoever builds the environment holds it alone:
two starts at once are safe, and a run that can get the lock alone knows that no other lives, so it clears what a
killed one left (Snakemake's lock, jobs without a parent). SIGINT, SIGTERM and SIGHUP end a run within five
seconds: its jobs get SIGTERM, to save a checkpoint, Snakemake an interrupt, and what is still there at the end is
killed.
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

from environment import PYTHON, ROOT, VENV, Failed, build, say, state

MARK = "PGRPO_RUN"  # in the environment of every process of a run: the root that it belongs to
CALL = f"PGRPO_CALL={os.getpid()}.{time.monotonic_ns()}"  # and the call of this wrapper that it is of
# Torch's buffers stay in the process: else each step returns them to the kernel and faults them in again, 4 of 5 page
# faults and 5% of the CPU time of a run of the small model. 32 MiB is the most that glibc takes for the first.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(1 << 30)}
GRACE = 4.5  # seconds from a signal to SIGKILL
# Such calls start no job; they leave what a killed run left as it is.
READ_ONLY = re.compile(
    r"-[a-zA-Z]*n[a-zA-Z]*|-[hlvSD]|--(dry-?run|nolock|unlock|lint|dag|rulegraph|filegraph|d3dag|summary"
    r"|detailed-summary|list.*|help|version|report|archive|print-compilation)(=.*)?"
)


def main(arguments: list[str]) -> int:
    """Return the exit status of the whole run."""
    typed_in = os.environ.get("PWD") or str(ROOT)  # the folder may be gone
    os.chdir(ROOT)
    (ROOT / ".snakemake").mkdir(exist_ok=True)
    lock = os.open(ROOT / ".snakemake" / "running", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        kind, fresh = state()
        if not fresh:
            if not alone(lock):
                say("waiting for another ./snakemake in this folder, the environment must be made anew")
                fcntl.flock(lock, fcntl.LOCK_EX)
            kind, fresh = state()  # the other may have made it
            if not fresh:
                build(kind)
    except Failed as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    if starts_jobs(arguments) and alone(lock):
        clear()
    fcntl.flock(lock, fcntl.LOCK_SH)
    return run(arguments, lock, typed_in)


def starts_jobs(arguments: list[str]) -> bool:
    """Return whether a call makes something, and does not only show what there is."""
    return not any(READ_ONLY.fullmatch(word) for word in arguments)


def alone(lock: int) -> bool:
    """Take the lock for this run alone; return whether that succeeded."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# --- the run ---


class Stopped(Exception):
    """A signal asked for the end; `args` is (its number,)."""


def run(arguments: list[str], lock: int, typed_in: str) -> int:
    """Run Snakemake to its end and return its exit status, 128 + n after signal n.

    typed_in: the folder where the call was typed; config files may lie there, too.
    """
    environ = {**KEEP_MEMORY, **os.environ}
    environ |= homes()
    environ["PYTHONPATH"] = str(ROOT / "src")  # for jobs in a conda environment, which lacks the package
    environ[MARK] = str(ROOT)
    environ["PGRPO_TYPED_IN"] = typed_in
    environ |= [CALL.split("=")]
    environ["PATH"] = os.pathsep.join(
        [str(VENV / "bin"), environ.get("PATH", os.defpath), str(ROOT / "envs" / "bin")]
    )
    prctl, set_pdeathsig = ctypes.CDLL(None).prctl, 1
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def on_signal(number, _frame):
        for other in signals:
            signal.signal(other, signal.SIG_IGN)
        raise Stopped(number)

    snakemake = subprocess.Popen(
        [PYTHON, ROOT / "envs" / "start.py", *arguments],
        env=environ,
        pass_fds=[lock],  # held as long as either of the two lives
        preexec_fn=lambda: prctl(
            set_pdeathsig, signal.SIGKILL
        ),  # without us it would run on, deaf to signals
    )
    try:
        for number in signals:
            signal.signal(number, on_signal)
        status = snakemake.wait()
    except Stopped as stopped:
        stop(snakemake)
        say("stopped; finished steps and checkpoints of training are kept, what else was under way is not")
        say("type the same command to go on")
        return 128 + stopped.args[0]
    return status if status >= 0 else 128 - status


def homes() -> dict[str, str]:
    """Return where caches go where the home folder takes none: into this one; hub models stay where they are."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        if os.access(cache, os.W_OK):
            return {}
    except OSError:
        pass
    own = {name: str(ROOT / ".snakemake" / "home") for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME")}
    hub = cache / "huggingface"
    return own | ({"HF_HOME": str(hub)} if hub.is_dir() and "HF_HOME" not in os.environ else {})


def stop(snakemake: subprocess.Popen) -> None:
    """End this call's run within GRACE seconds: SIGTERM to jobs, SIGINT to Snakemake, SIGKILL to what remains."""
    deadline = time.monotonic() + GRACE
    snakemake.send_signal(signal.SIGINT)  # heard once, also where Ctrl-C has reached it already
    send([pid for pid in processes(CALL) if pid != snakemake.pid], signal.SIGTERM)
    while (snakemake.poll() is None or processes(CALL)) and time.monotonic() < deadline:
        time.sleep(0.05)
    send(processes(CALL), signal.SIGKILL)
    snakemake.wait()


# --- what a killed run leaves ---


def clear() -> None:
    """End jobs that outlived a killed run, and take away the lock it left in `.snakemake/locks`."""
    if orphans := processes():
        send(orphans, signal.SIGTERM)
        deadline = time.monotonic() + GRACE
        while processes() and time.monotonic() < deadline:
            time.sleep(0.05)
        send(processes(), signal.SIGKILL)
        say(f"ended {len(orphans)} processes of a run that was killed")
    shutil.rmtree(ROOT / ".snakemake" / "tmp", ignore_errors=True)
    locks = ROOT / ".snakemake" / "locks"
    if locks.is_dir() and any(locks.iterdir()) and not plain_run():
        shutil.rmtree(locks)
        say("took away the lock of a run that was killed")


def processes(mark: str = f"{MARK}={ROOT}") -> list[int]:
    """Return the living processes on this machine with a mark in their environment: this root's, or one call's."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (entry / "environ").read_bytes().split(b"\0"):  # a zombie's is empty
                found.append(int(entry.name))
        except OSError:
            continue  # ended meanwhile, or another user's
    return [pid for pid in found if pid != os.getpid()]


def plain_run() -> bool:
    """Return whether a Snakemake that this wrapper did not start works in this folder."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if (
                executes_snakemake(words, (entry / "exe").readlink().name)
                and (entry / "cwd").resolve() == ROOT
            ):
                return True
        except OSError:
            continue  # ended meanwhile, or another user's
    return False


def executes_snakemake(words: list[bytes], program: str) -> bool:
    """Return whether a process is Python with Snakemake as its script or module, whatever else has that word."""
    if not program.startswith("python"):
        return False
    rest = iter(words[1:])
    for word in rest:
        if word == b"-m":
            return next(rest, b"").split(b".")[0] == b"snakemake"
        if word in (b"-W", b"-X"):
            next(rest, b"")
        elif not word.startswith(b"-") or word in (b"-", b"-c"):
            return word.rsplit(b"/", 1)[-1] == b"snakemake"
    return False


def send(pids: list[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
