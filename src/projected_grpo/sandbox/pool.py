"""The trusted side of the sandbox: starts zygotes, picks the strongest layer that works here, hands out jobs.

Layers, strongest first: `namespaces` (own pid, mount, network, IPC namespaces, an empty root, no capabilities, a list
of system calls), `bubblewrap` (the same by the helper that distributions allow to), `landlock` (no namespaces: Landlock
for files, the list of system calls for the rest), and, only when allowed, `weak` (resource limits alone).
"""

import contextlib
import marshal
import os
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from projected_grpo.errors import UserError
from projected_grpo.sandbox import kernel, wire
from projected_grpo.sandbox.values import equals

STRONG = ("namespaces", "bubblewrap", "landlock")
WEAK = "weak"
SOURCE = Path(__file__).resolve().parents[2]
BOOT = "import sys; sys.path.insert(0, sys.argv.pop()); import projected_grpo.sandbox.zygote as z; z.main()"
ATTEMPTS = 3  # of a job whose zygote died
START_SECONDS = 60
CPU_CALL = 3.0  # seconds of CPU for loading a submission, and for each call


class ZygoteDied(Exception):
    """The zygote's side of the socket is closed."""


class Zygote:
    """One warm process, seen from the trusted side."""

    def __init__(self, level: str):
        ours, theirs = socket.socketpair()
        interpreter = os.path.realpath(sys.executable)
        command = [
            interpreter,
            "-s",
            "-S",
            "-P",
            "-X",
            "utf8",
            "-c",
            BOOT,
            level,
            str(theirs.fileno()),
            str(SOURCE),
        ]
        if level == "bubblewrap":
            command = [*_bubblewrap(interpreter), *command]
        self.socket = ours
        self.folder: str | None = None
        try:
            self.process = subprocess.Popen(
                command,
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL
                if level == "bubblewrap"
                else None,  # it says on its own why it fails
                env={"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"},
                cwd="/",
                start_new_session=True,  # a Ctrl-C is the trainer's to handle
            )
        finally:
            theirs.close()
        self.socket.settimeout(START_SECONDS)
        try:
            hello = self.receive()
        except (ZygoteDied, TimeoutError) as error:
            self.close()
            raise OSError(f"{level}: it did not start") from error
        if "error" in hello:
            self.close()
            raise OSError(f"{level}: {hello['error']}")
        self.folder = hello["folder"]
        self.socket.settimeout(None)

    def send(self, job: dict[str, Any]) -> None:
        try:
            self.socket.sendall(wire.pack(job))
        except OSError as error:
            raise ZygoteDied from error

    def receive(self) -> Any:
        try:
            return wire.receive(self.socket)
        except (EOFError, ConnectionError) as error:
            raise ZygoteDied from error

    def close(self) -> None:
        """End it; it ends by itself, and what it started with it, when the socket closes."""
        self.socket.close()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)  # it was killed and could not do it itself


class Pool:
    """`workers` zygotes of the strongest layer that works; started at the first use.

    levels: the layers to try, in order; level: the one that works. Raises UserError at start where none does.
    """

    def __init__(self, workers: int, levels: tuple[str, ...] = STRONG):
        self.workers, self.levels = workers, levels
        self._idle: list[Zygote] = []
        self._level: str | None = None

    @property
    def level(self) -> str:
        if self._level is None:
            self._level, zygote = choose_level(self.levels)
            print(f"sandbox: {self._level}", file=sys.stderr)
            self._idle.append(zygote)
        return self._level

    def run(self, jobs: Iterable[tuple[Any, dict] | None]) -> Iterator[tuple[Any, list[dict[str, Any]]]]:
        """Yield (key, observations) for each (key, job), as they come; `jobs` is read as workers get free.

        None in `jobs` means: nothing more before an answer is out. A zygote that died is replaced and its job
        repeated; raises RuntimeError where that does not help.
        """
        source = iter(jobs)
        busy: dict[socket.socket, tuple[Zygote, Any, dict[str, Any], int]] = {}
        with selectors.DefaultSelector() as selector:

            def hand_out(key: Any, job: dict[str, Any], attempt: int) -> None:
                level = self.level
                zygote = self._idle.pop() if self._idle else Zygote(level)
                busy[zygote.socket] = (zygote, key, job, attempt)
                selector.register(zygote.socket, selectors.EVENT_READ)
                with contextlib.suppress(ZygoteDied):  # seen below: its socket is readable now
                    zygote.send(job)

            def fill() -> None:
                while len(busy) < self.workers:
                    following = next(source, None)
                    if following is None:
                        return
                    hand_out(*following, 1)

            try:
                fill()
                while busy:
                    for event, _ in selector.select():
                        zygote, key, job, attempt = busy.pop(event.fileobj)
                        selector.unregister(event.fileobj)
                        try:
                            answer = zygote.receive()
                        except ZygoteDied:
                            zygote.close()
                            if attempt == ATTEMPTS:
                                raise RuntimeError(
                                    f"the sandbox died {ATTEMPTS} times over one job"
                                ) from None
                            hand_out(key, job, attempt + 1)
                            continue
                        self._idle.append(zygote)
                        fill()
                        yield key, answer
                        fill()
            finally:
                for zygote, *_ in busy.values():
                    zygote.close()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()


def choose_level(levels: tuple[str, ...]) -> tuple[str, Zygote]:
    """Return the first layer that passes the probes, and a zygote of it."""
    reasons = []
    for level in levels if kernel.LINUX else [level for level in levels if level == WEAK]:
        if level == "bubblewrap" and shutil.which("bwrap") is None:
            reasons.append("bubblewrap: not installed")
            continue
        try:
            zygote = Zygote(level)
        except OSError as error:
            reasons.append(str(error))
            continue
        try:
            failed = probe(zygote, level)
        except ZygoteDied:
            failed = "it died"
        if failed is None:
            return level, zygote
        zygote.close()
        reasons.append(f"{level}: {failed}")
    raise UserError(
        f"sandbox: no layer works here ({'; '.join(reasons)}); to accept resource limits alone, where submissions"
        " can read files and use the network: `sandbox: weak` in the config, --allow-weak-sandbox on the command line"
    )


GOOD = "class Solution:\n    def f(self, x):\n        return sorted([x, 1])\n"
WRONG = "class Solution:\n    def f(self, x):\n        return [1]\n"
ESCAPE = """
import os, socket
class Solution:
    def f(self, path, parent):
        done = []
        def attempt(name, action):
            try:
                action()
            except OSError:
                return
            done.append(name)
        attempt("read a file", lambda: open(path).read())
        attempt("write a file", lambda: open(path, "a").write("x"))
        attempt("start a process", lambda: os.fork() or os._exit(0))
        attempt("open a socket", lambda: socket.socket())
        attempt("signal the parent", lambda: os.kill(parent, 0))
        return done
"""


def probe(zygote: Zygote, level: str) -> str | None:
    """Return what is wrong with a new zygote: it must pass right code, fail wrong code and hold back an escape."""

    def value(code: str, *args: Any) -> bytes:
        tests = {"method": "f", "tests": [marshal.dumps((args, {}))]}
        zygote.send(job("", code, [check("calls", tests)]))
        frames = zygote.receive()[0]["frames"]
        return frames[2][1:] if len(frames) > 2 and frames[2][:1] == b"v" else b'["x"]'

    if not equals(value(GOOD, 7), [1, 7], 100):
        return "right code fails in it"
    if equals(value(WRONG, 7), [1, 7], 100):
        return "wrong code passes in it"
    if level == WEAK:
        return None
    with tempfile.NamedTemporaryFile(mode="w") as canary:
        os.chmod(canary.name, 0o666)
        answer = value(ESCAPE, canary.name, os.getpid())
    return (
        None
        if equals(answer, [], 100)
        else f"a submission in it can {answer[:100].decode('ascii', 'replace')}"
    )


def job(setup: str, code: str, checks: list[dict[str, Any]], granted: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the message of one submission: `setup` is run before `code` in the same module.

    granted: names that the code may use and still count as having no effects (see `names`).
    """
    return {
        "setup": setup,
        "code": code.encode("utf-8", "surrogatepass"),
        "checks": checks,
        "granted": granted,
    }


def check(
    probe: str,
    arguments: dict[str, Any],
    name: str = "solution",
    stdout: bytes | None = None,
    file: tuple[str, bytes] | None = None,
    cpu: float = CPU_CALL,
    effects: bool = False,
) -> dict[str, Any]:
    """Return one check of a job: a fork that loads the code as module `name` and runs `probe`.

    stdout: lower-case bytes to look for on standard output; file: name and lower-case bytes to look for in it;
    cpu: seconds for loading and for each call; effects: it asks for effects only, so inert code can be spared it.
    """
    return {
        "probe": probe,
        "arguments": marshal.dumps(arguments),
        "name": name,
        "stdout": stdout,
        "file": file,
        "cpu": cpu,
        "effects": effects,
    }


def _bubblewrap(interpreter: str) -> list[str]:
    """Return the command line that starts a zygote inside bubblewrap."""
    from projected_grpo.sandbox import room

    binds = [*room.readable(), str(SOURCE / "projected_grpo"), os.path.dirname(interpreter)]
    command = [shutil.which("bwrap") or "bwrap", "--unshare-all", "--die-with-parent", "--cap-drop", "ALL"]
    for path in binds:
        command += ["--ro-bind", path, path]
    return [*command, "--dev", "/dev", "--tmpfs", "/tmp", "--"]
