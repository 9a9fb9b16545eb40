"""One zygote, seen from the trusted side: how it is started, what is sent to it, what it answers."""

import contextlib
import fcntl
import marshal
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from projected_grpo.sandbox import kernel, room, wire
from projected_grpo.sandbox.watch import TOKEN, Budget, Watch

SOURCE = Path(__file__).resolve().parents[2]
BOOT = (
    "import sys; sys.path.insert(0, sys.argv.pop()); from projected_grpo.sandbox.zygote import main; main()()"
)
START_SECONDS = 60
ONE_AT_A_TIME = (
    "landlock",
)  # layers without process ids of their own: no check runs beside another on the machine
IN_PROCESS = (
    "attribute",
    "own_tests",
    "equality",
)  # probes whose answer the submission's process alone knows


class ZygoteDied(Exception):
    """The zygote's side of the socket is closed."""


class Zygote:
    """A warm process of one layer. Raises OSError where it does not start.

    setup: code that is run once for all checks of the jobs which begin with it. What a check reports and prints goes
    through one pipe and one file, made here: new ones would tell a check, by their numbers, what was made meanwhile.
    """

    def __init__(self, level: str, setup: str = ""):
        ours, theirs = socket.socketpair()
        self.socket = ours
        self.setup = setup
        self.turn = os.open("/", os.O_RDONLY | os.O_CLOEXEC) if level in ONE_AT_A_TIME else None
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        self.output = _file(b"")
        self.folder = _make_folder() if level in ("landlock", "weak") else None
        try:
            self.process = subprocess.Popen(
                _command(level, theirs.fileno(), self.folder or "", compiled(setup)),
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                # Bubblewrap says on its own why it fails.
                stderr=subprocess.DEVNULL if level == "bubblewrap" else None,
                # One arena for all threads: each thread's own would count against the address space. Functions of
                # libraries are looked up here, not by each check anew.
                env={"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "MALLOC_ARENA_MAX": "1", "LD_BIND_NOW": "1"},
                cwd="/",
                start_new_session=True,  # a Ctrl-C is the trainer's to handle
            )
        except OSError:
            self._remove_folder()
            raise
        finally:
            theirs.close()
        self.socket.settimeout(START_SECONDS)
        try:
            hello = self.receive()
        except (ZygoteDied, TimeoutError) as error:
            self.close()
            raise OSError(f"{level}: it did not start") from error
        if hello.kind == wire.FAILED:
            self.close()
            raise OSError(f"{level}: {hello.text}")
        self.socket.settimeout(None)

    def start(self, job: dict[str, Any], check: dict[str, Any], budget: Budget, later: int = 0) -> Watch:
        """Start one check of `job`, of which `later` more follow."""
        token = os.urandom(TOKEN)
        payload = {
            "setup": None if job["setup"] == self.setup else compiled(job["setup"]),
            "code": job["code"],
            "token": token,
            "name": check["name"],
            "probe": check["probe"],
            "arguments": check["arguments"],
        }
        flags = wire.START | wire.KIND * wire.KINDS.index(check["kind"])
        flags |= wire.STDOUT * check["stdout"] | wire.FILE * check["file"]
        if self.turn is not None:
            fcntl.flock(self.turn, fcntl.LOCK_EX)
        drain(self.reader)
        os.ftruncate(self.output, 0)
        output = self.output if check["stdout"] else None
        watch = Watch(self.reader, output, token, check["frames"], check["answer_cpu"], budget, later)
        fds = [_file(marshal.dumps(payload)), _anew(self.writer, os.O_WRONLY)]
        if output is not None:
            fds.append(_anew(output, os.O_RDWR))
        try:
            wire.command(self.socket, flags, tuple(fds))
        except OSError:
            raise ZygoteDied from None
        finally:
            for fd in fds:
                os.close(fd)
        return watch

    def end_check(self) -> None:
        with contextlib.suppress(OSError):  # seen when it is received from
            wire.command(self.socket, wire.KILL)

    def receive(self) -> wire.Event:
        try:
            event = wire.receive_event(self.socket)
        except (EOFError, ConnectionError) as error:
            raise ZygoteDied from error
        if self.turn is not None and event.kind == wire.ENDED:
            fcntl.flock(self.turn, fcntl.LOCK_UN)
        return event

    def close(self) -> None:
        """End it; it ends by itself, and what it started with it, when the socket closes."""
        self.socket.close()
        for fd in (self.reader, self.writer, self.output, *([] if self.turn is None else [self.turn])):
            os.close(fd)
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._remove_folder()

    def _remove_folder(self) -> None:
        if self.folder is not None:
            room.remove(self.folder)  # if it was killed and could not do it itself


def job(setup: str, code: str, checks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one submission: `setup`, which is ours, is run before `code` in the same module."""
    return {
        "setup": setup,
        "code": code.encode("utf-8", "surrogatepass"),
        "checks": checks,
    }


def check(
    probe: str,
    arguments: dict[str, Any],
    name: str = "solution",
    stdout: bool = False,
    file: str | None = None,
    answers: int = 0,
    answer_cpu: float | None = None,
    mute: bool = False,
    go_on: tuple[bytes, ...] = (b"",),
) -> dict[str, Any]:
    """Return one check of a job: a fork that loads the code as module `name` and runs `probe`.

    stdout, file: bring back what it wrote to standard output, to that file of room.RESULTS; answers: values that an
    honest check reports; answer_cpu: seconds for each of them, where one may take less than all; mute: it holds what
    no other may learn, and can make and change nothing; go_on: how the frame of its answer begins, if there is one,
    where the checks that follow still matter.
    """
    return {
        "probe": probe,
        "arguments": marshal.dumps(arguments),
        "name": name,
        "stdout": stdout,
        "file": 0 if file is None else room.RESULTS.index(file) + 1,
        "frames": answers + 3,
        "answer_cpu": answer_cpu,
        "kind": "mute" if mute else "alone" if probe in IN_PROCESS else "plain",
        "go_on": go_on,
    }


def compiled(setup: str, known: dict[str, bytes] = {}) -> bytes:  # noqa: B006  (it is a cache)
    """Return the code of a setup text as a check unpacks it; one that does not compile raises in the check."""
    found = known.get(setup)
    if found is None:
        if len(known) > 256:
            known.clear()
        try:
            code = compile(setup, "<setup>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            code = compile("raise SyntaxError", "<setup>", "exec")
        found = known[setup] = marshal.dumps(code)
    return found


def _file(content: bytes) -> int:
    """Return a descriptor of a file that has no name."""
    if kernel.LINUX:
        fd = os.memfd_create("check")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]
    return fd


def _anew(fd: int, mode: int) -> int:
    """Return a descriptor that shares nothing but the file with `fd`: neither position nor flags."""
    return os.open(f"/proc/self/fd/{fd}", mode | os.O_CLOEXEC) if kernel.LINUX else os.dup(fd)


def drain(reader: int) -> None:
    """Read what an earlier check has left in the pipe."""
    with contextlib.suppress(BlockingIOError):
        while os.read(reader, 1 << 16):
            pass


def _make_folder() -> str:
    """Return a new temporary folder where every user can reach it, if possible: checks may be of another user."""
    places = [tempfile.gettempdir(), "/tmp", "/var/tmp"]
    for place in places:
        with contextlib.suppress(OSError):
            if room.others_may_read(os.path.join(os.path.realpath(place), "box")):
                return tempfile.mkdtemp(prefix="projected-grpo-box-", dir=place)
    return tempfile.mkdtemp(prefix="projected-grpo-box-")


def _command(level: str, descriptor: int, folder: str, setup: bytes) -> list[str]:
    interpreter = os.path.realpath(sys.executable)
    options = [
        "-s",
        "-S",
        "-P",
        "-X",
        "utf8",
        "-c",
        BOOT,
        level,
        str(descriptor),
        folder,
        setup.hex(),
        str(SOURCE),
    ]
    return [*(_bubblewrap(interpreter) if level == "bubblewrap" else []), interpreter, *options]


def _bubblewrap(interpreter: str) -> list[str]:
    """Return the command line that starts a zygote inside bubblewrap: nothing but the box can be written to."""
    binds = [*room.readable(), str(SOURCE / "projected_grpo"), os.path.dirname(interpreter)]
    command = [shutil.which("bwrap") or "bwrap", "--unshare-all", "--die-with-parent", "--cap-drop", "ALL"]
    for path in binds:
        command += ["--ro-bind", path, path]
    for device in room.DEVICES:
        command += ["--dev-bind", device, device]
    return [*command, "--tmpfs", room.BOX, "--remount-ro", "/", "--"]
