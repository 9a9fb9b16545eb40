"""The warm process: takes jobs, forks one locked-in child per check, watches it, reaps it, says what it saw.

Started by exec of a clean interpreter, never forked from the trainer: neither torch nor CUDA nor the trainer's memory
is in it. It runs no submitted code itself and never hears an expected value. It ends when the other side of its
socket closes, when its parent is gone, or by any signal; what it started ends with it.
"""

import ast
import os
import resource
import select
import signal
import socket
import stat
import sys
import tempfile
import types
from typing import Any

from projected_grpo.sandbox import child, kernel, landlock, names, room, seccomp, watch, wire

STACK = 512 << 20  # bytes; deep recursion is no mistake of a submission
NOT_LOCKED_IN = 70  # exit status of a check that did not get as far as the submission
# Modules a submission may want, imported once instead of in every fork.
WARM = """
abc array bisect cmath collections.abc contextlib copy dataclasses datetime decimal enum fractions functools heapq
inspect itertools json math numbers operator queue random re statistics string struct textwrap threading time traceback
typing
""".split()  # noqa: SIM905


def main() -> None:
    level, descriptor = sys.argv[1], int(sys.argv[2])
    _deepen_stack()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    for name in WARM:
        __import__(name)
    control = socket.socket(fileno=descriptor)
    try:
        zygote = Zygote(level, control)
    except OSError as error:
        control.sendall(wire.pack({"error": str(error)}))
        return
    folder = zygote.layer.box if level in ("landlock", "weak") else None
    control.sendall(wire.pack({"folder": folder}))
    zygote.serve()


def _deepen_stack() -> None:
    """A larger stack takes effect at exec only, so start over once."""
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    wanted = STACK if hard == resource.RLIM_INFINITY else min(STACK, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_STACK, (wanted, hard))
        os.execv(sys.executable, sys.orig_argv)


class Zygote:
    """One worker. level: namespaces, bubblewrap, landlock or weak."""

    def __init__(self, level: str, control: socket.socket):
        self.level, self.control = level, control
        self.parent = os.getppid()
        self.setups: dict[str, tuple[types.CodeType, frozenset[str] | None]] = {}
        self.null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        self.own_pids: int | None = None
        root = os.geteuid() == 0 and kernel.LINUX
        uid = 0x60000000 + os.getpid() % 0x10000000 if root else None
        if level == "namespaces":
            if room.enter_namespaces():
                uid = None  # no other user is known in there
            self._become_init()
            room.build_root()
            self.own_pids = os.pidfd_open(os.getpid())
            box = room.BOX
        else:
            if level == "bubblewrap" or not room.others_may_read():
                uid = None  # it could not import: keep the user, without any rights
            box = room.make_folder(uid)
        fence = None
        if level == "landlock" or (level == "bubblewrap" and landlock.version() > 0):
            fence = landlock.ruleset((*room.readable(), *room.DEVICES), box)
        if level != "weak" and not seccomp.supported():
            raise OSError(f"no list of system calls for {kernel.machine}")
        self.layer = child.Layer(
            filter=seccomp.program() if level != "weak" else None,
            fence=fence,
            uid=uid,
            box=box,
            capabilities=kernel.LINUX and (level == "namespaces" or root),
        )
        child.prepare()

    def _become_init(self) -> None:
        """Go on as process 1 of the new pid namespace; the outer process only waits for it and for its own parent."""
        pid = os.fork()
        if pid == 0:
            kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
            return
        self.control.close()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        while os.getppid() == self.parent:
            if os.waitpid(pid, os.WNOHANG) != (0, 0):
                os._exit(0)
            signal.sigtimedwait({signal.SIGCHLD}, 1.0)
        os._exit(0)  # the kernel ends the rest

    def serve(self) -> None:
        """Answer jobs until the other side is gone."""
        try:
            while True:
                if not select.select([self.control], [], [], 1.0)[0]:
                    if self.own_pids is None and os.getppid() != self.parent:
                        break
                    continue
                job = wire.receive(self.control)
                self.control.sendall(wire.pack(self.answer(job)))
        except (EOFError, ConnectionError):
            pass
        finally:
            if self.level != "namespaces":
                room.remove_folder(self.layer.box)

    def answer(self, job: dict[str, Any]) -> list[dict[str, Any]]:
        """Run the checks of one job in order, leaving out later ones that cannot matter."""
        job["setup"], job["bound"] = self._setup(job["setup"])
        seen = []
        for check in job["checks"]:
            if seen and check["effects"] and seen[0]["frames"][0] == b"cinert":
                break
            seen.append(self.check(job, check))
            if not seen[-1]["frames"] or seen[-1]["frames"][0][:1] != b"c":
                break
            if seen[-1]["cause"] == "timeout" and len(seen[-1]["frames"]) == 1:
                break  # it does not even load; neither will it for the next check
        return seen

    def _setup(self, text: str) -> tuple[types.CodeType, frozenset[str] | None]:
        """Return the setup's code and the names it binds; each text is parsed once."""
        found = self.setups.get(text)
        if found is None:
            if len(self.setups) > 256:
                self.setups.clear()
            tree = ast.parse(text, "<setup>")
            found = (
                compile(tree, "<setup>", "exec", dont_inherit=True),
                names.bound_by(tree),
            )
            self.setups[text] = found
        return found

    def check(self, job: dict[str, Any], check: dict[str, Any]) -> dict[str, Any]:
        token = os.urandom(watch.TOKEN)
        reader, writer = os.pipe()
        stdout = _scratch() if check["stdout"] else self.null
        namespaces = self.level == "namespaces"
        if namespaces:
            room.mount_box()
            kernel.unshare(kernel.CLONE_NEWPID)
        pid = kernel.fork()
        if pid == 0:
            try:
                child.lock_in(self.layer, writer, stdout, self.null)
                child.run(job, check, token)
            finally:
                os._exit(NOT_LOCKED_IN)
        if namespaces:
            kernel.setns(self.own_pids, kernel.CLONE_NEWPID)
        os.close(writer)
        watched = watch.Watch(
            pid, reader, token, self.control, check["cpu"], None if namespaces else self.layer.box
        )
        watched.run()
        os.close(reader)
        if watched.status == NOT_LOCKED_IN and not watched.frames:
            raise RuntimeError("a check could not give up its rights")  # no verdict: start over
        seen = {
            "frames": watched.frames,
            "cause": watched.cause,
            "status": watched.status,
            "cpu": watched.cpu,
        }
        if check["stdout"]:
            seen["stdout"] = check["stdout"] in _read_all(stdout).lower()
            os.close(stdout)
        if check["file"]:
            seen["file"] = _file_holds(self.layer.box, *check["file"])
        if namespaces:
            kernel.unmount(room.BOX)
        else:
            room.empty(self.layer.box)
        return seen


def _scratch() -> int:
    """Return a descriptor of an empty file that has no name."""
    if kernel.LINUX:
        return os.memfd_create("stdout")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _read_all(fd: int) -> bytes:
    os.lseek(fd, 0, os.SEEK_SET)
    parts = []
    while part := os.read(fd, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def _file_holds(folder: str, name: str, word: bytes) -> bool:
    """Whether `name` in `folder` is a regular file, no link, that holds `word` in any letter case."""
    path = os.path.join(folder, name)
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return False
        os.chmod(path, 0o600)  # whoever wrote it is gone
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return word in _read_all(fd).lower()
    finally:
        os.close(fd)


if __name__ == "__main__":
    main()
