"""The warm process: forks one locked-in child per check, waits for its end, says how it ended.

Started by exec of a clean interpreter, never forked from the trainer: neither torch nor CUDA nor the trainer's memory
is in it. It runs no submitted code and reads nothing of a submission: what a check needs and what it reports passes
through as descriptors, and every child inherits only what is here. It ends when the other side of its socket closes,
when its parent is gone, or by any signal; what it started ends with it.
"""

import contextlib
import functools
import os
import resource
import select
import signal
import socket
import sys
from typing import Any, NamedTuple

from projected_grpo.sandbox import child, kernel, landlock, room, seccomp, wire

STACK = 512 << 20  # bytes; deep recursion is no mistake of a submission
NOT_LOCKED_IN = 70  # exit status of a check that did not get as far as the submission
QUICK = 0.005  # seconds in which most checks end
TICK = 0.1  # seconds between looks at the disk
# Modules a submission may want, imported once instead of in every fork.
WARM = """
abc array bisect cmath collections.abc contextlib copy dataclasses datetime decimal enum fractions functools heapq
inspect itertools json math numbers operator queue random re statistics string struct textwrap threading time traceback
typing
""".split()  # noqa: SIM905


def main() -> functools.partial:
    """Serve to the end. Returns twice: here with nothing left to do, in each check with its stage."""
    level, descriptor, folder, setup = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
    _deepen_stack()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    for name in WARM:
        __import__(name)
    child.hold_numbers()
    control = socket.socket(fileno=os.dup(descriptor))
    os.close(descriptor)
    try:
        state = set_up(level, control, folder, bytes.fromhex(setup))
    except OSError as error:
        wire.tell(control, wire.Event(wire.FAILED, text=str(error) or "it failed"))
        return functools.partial(int)
    wire.tell(control, wire.Event(wire.READY))
    stage = None
    try:
        stage = serve(state)
    finally:
        if stage is None and folder:
            room.remove(folder)  # whoever started this may have been killed and could not
    return stage or functools.partial(int)


def _deepen_stack() -> None:
    """A larger stack takes effect at exec only, so start over once."""
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    wanted = STACK if hard == resource.RLIM_INFINITY else min(STACK, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_STACK, (wanted, hard))
        os.execv(sys.executable, sys.orig_argv)


class State(NamedTuple):
    """What a zygote knows. Plain data: a class with methods would lead a submission to this module.

    own_pids: pidfd of process 1 of its own pid namespace, or None; begin: the harness's `enter`.
    """

    level: str
    control: socket.socket
    parent: int
    own_pids: int | None
    layer: child.Layer
    begin: Any


def set_up(level: str, control: socket.socket, folder: str, setup: bytes) -> State:
    """Enter the layer.

    level: namespaces, bubblewrap, landlock or weak; folder: the box, where it is a plain folder; setup: code that most
    checks begin with, marshalled.
    """
    parent = os.getppid()
    own_pids = None
    root = os.geteuid() == 0 and kernel.LINUX
    uid = 0x60000000 + os.getpid() % 0x10000000 if root else None
    box = folder or room.BOX
    if level == "namespaces":
        if room.enter_namespaces():
            uid = None  # no other user is known in there
        _become_init(control, parent)
        room.build_root()
        own_pids = os.pidfd_open(os.getpid())
    elif level == "bubblewrap" or not room.others_may_read(os.__file__, box):
        uid = None  # it could not import: keep the user, without any rights
    if folder and uid is not None:
        os.chown(folder, uid, uid)
    fence = None
    if level == "landlock" or (level == "bubblewrap" and landlock.version() > 0):
        fence = landlock.ruleset((*room.readable(), *room.DEVICES), box)
    if level != "weak" and not seccomp.supported():
        raise OSError(f"no list of system calls for {kernel.machine}")
    filters = None
    if level != "weak":
        own = level == "namespaces"
        filters = {kind: seccomp.packed(seccomp.program(kind, own)) for kind in wire.KINDS}
    layer = child.Layer(
        filters=filters,
        fence=fence,
        uid=uid,
        box=box,
        capabilities=kernel.LINUX and (level == "namespaces" or root),
    )
    return State(level, control, parent, own_pids, layer, child.prepare(setup, box, level))


def _become_init(control: socket.socket, parent: int) -> None:
    """Go on as process 1 of the new pid namespace; the outer process only waits for it and for its own parent."""
    pid = os.fork()
    if pid == 0:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        return
    control.close()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    while os.getppid() == parent:
        if os.waitpid(pid, os.WNOHANG) != (0, 0):
            os._exit(0)
        signal.sigtimedwait({signal.SIGCHLD}, 1.0)
    os._exit(0)  # the kernel ends the rest


def serve(state: State) -> functools.partial | None:
    """Start checks until the other side is gone; return the stage in a check, None in the zygote."""
    try:
        while True:
            if not select.select([state.control], [], [], 1.0)[0]:
                if state.own_pids is None and os.getppid() != state.parent:
                    return None
                continue
            flags, fds = wire.receive_command(state.control)
            if flags != wire.KILL:  # else: of a check that has ended
                stage = check(state, flags, fds)
                if stage is not None:
                    return stage
    except (EOFError, ConnectionError):
        return None


def check(state: State, flags: int, fds: tuple[int, ...]) -> functools.partial | None:
    namespaces = state.level == "namespaces"
    if not namespaces:
        os.utime(
            state.layer.box, ns=(0, 0), follow_symlinks=False
        )  # else a change in the tick of the last one would not show
    if namespaces:
        room.mount_box()
        kernel.unshare(kernel.CLONE_NEWPID)
    pid = kernel.fork()
    if pid == 0:
        try:
            payload, report, *rest = fds
            output = rest[0] if rest else None
            state.control.detach()  # closed with all others; its number will be another file's
            kind = wire.KINDS[flags // wire.KIND % (wire.FILE // wire.KIND)]
            return child.enter(state.layer, state.begin, payload, report, output, kind)
        except BaseException:
            os._exit(NOT_LOCKED_IN)
    if namespaces:
        kernel.setns(state.own_pids, kernel.CLONE_NEWPID)  # type: ignore[arg-type]
    for fd in fds:
        os.close(fd)
    full = _wait(state, pid)
    _, status, usage = os.wait4(pid, 0)
    if state.level == "weak":
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)  # what it started, as far as it is known
    status, seconds = os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime
    file = flags // wire.FILE
    found = room.open_file(state.layer.box, room.RESULTS[file - 1]) if file else None
    kept = () if found is None else (found,)
    if not namespaces:  # whoever comes next may be in sight of what is there
        touched = os.stat(state.layer.box).st_mtime_ns != 0
        room.empty(state.layer.box)
        if state.level != "weak":
            threads = not 0 < room.next_id() - pid <= room.FEW
            longest = room.BLUR_BOTH if touched and threads else room.BLUR
            if touched:
                room.blur_numbers(state.layer.box, longest)
            if touched or threads:  # the few ids would add to what files tell
                room.blur_ids(longest)
    wire.tell(state.control, wire.Event(wire.ENDED, status, full, seconds, kept))
    for fd in kept:
        os.close(fd)
    if namespaces:
        room.unmount_box()
    return None


def _wait(state: State, pid: int) -> bool:
    """Return when the check has ended, or been ended; whether because it filled the disk."""
    pidfd = os.pidfd_open(pid) if kernel.LINUX else None
    poll = select.poll()
    poll.register(state.control.fileno(), select.POLLIN)
    if pidfd is not None:
        poll.register(pidfd, select.POLLIN)
    said = full = False
    wait = QUICK
    try:
        while True:
            ready = dict(poll.poll(wait * 1000))
            if pidfd in ready or (pidfd is None and _ended(pid)):
                return full
            if state.control.fileno() in ready:
                wire.receive_command(state.control)  # KILL, or nobody waits for the answer any more
                os.kill(pid, signal.SIGKILL)
            elif not said:
                fds = () if pidfd is None else (pidfd,)
                wire.tell(state.control, wire.Event(wire.RUNNING, pid, fds=fds))
                said, wait = True, TICK if pidfd is not None else QUICK
            elif state.level != "namespaces" and not full and room.overfull(state.layer.box):
                full = True
                os.kill(pid, signal.SIGKILL)
    except (EOFError, ConnectionError):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    finally:
        if pidfd is not None:
            os.close(pidfd)


def _ended(pid: int) -> bool:
    """Whether it has ended, where no descriptor says so."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


if __name__ == "__main__":
    main()()
