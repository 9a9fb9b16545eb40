"""Linux calls that Python has no function for. Each raises OSError; nothing here decides anything."""

import ctypes
import os
import platform
import signal
import sys

libc = ctypes.CDLL(None, use_errno=True)
machine = platform.machine()
LINUX = sys.platform == "linux"  # elsewhere only the weak layer runs, without any of these calls

CLONE_THREAD = 0x00010000
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MNT_DETACH = 2
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
SYS_CLOSE_RANGE, SYS_MOUNT_SETATTR = 436, 442  # the same number on every architecture
SYS_CLONE = {"x86_64": 56, "aarch64": 220}
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
SYS_CAPSET = {"x86_64": 126, "aarch64": 91}
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID, MOUNT_ATTR_NODEV = 1, 2, 4


def check(result: int, what: str) -> int:
    """Return `result`; where it is negative raise the OSError of errno, `what` in its text."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def syscall(number: int, *args: object) -> int:
    converted = [ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args]
    return check(libc.syscall(ctypes.c_long(number), *converted), f"system call {number}")


def prctl(option: int, value: int, extra: object = 0) -> None:
    third = ctypes.c_ulong(extra) if isinstance(extra, int) else extra
    check(
        libc.prctl(option, ctypes.c_ulong(value), third, ctypes.c_ulong(0), ctypes.c_ulong(0)),
        f"prctl {option}",
    )


def close_all_but(first: int) -> None:
    """Close every descriptor but the `first` ones; 4 or 5 of them."""
    if LINUX:
        check(libc.syscall(*_CLOSE_RANGES[first]), "close_range")
    else:
        os.closerange(first, 1024)


_CLOSE_RANGES = {
    first: tuple(map(ctypes.c_long, (SYS_CLOSE_RANGE, first, 0x7FFFFFFF, 0))) for first in (4, 5)
}  # made ahead of the fork, as all that a check does before it runs


def unshare(flags: int) -> None:
    check(libc.unshare(flags), "unshare")


def setns(fd: int, kind: int) -> None:
    check(libc.setns(fd, kind), "setns")


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    encode = lambda text: None if text is None else os.fsencode(text)  # noqa: E731
    check(
        libc.mount(encode(source), encode(target), encode(kind), ctypes.c_ulong(flags), encode(options)),
        f"mount {target}",
    )


def unmount(target: str) -> None:
    check(libc.umount2(os.fsencode(target), MNT_DETACH), f"unmount {target}")


class _MountAttr(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns_fd")]


def protect(path: str, attributes: int, recursive: bool = True) -> None:
    """Add mount attributes (MOUNT_ATTR_*) to the mount at `path` and, if recursive, to those below it."""
    attr = _MountAttr(attributes, 0, 0, 0)
    syscall(
        SYS_MOUNT_SETATTR,
        AT_FDCWD,
        ctypes.c_char_p(os.fsencode(path)),
        AT_RECURSIVE if recursive else 0,
        ctypes.byref(attr),
        ctypes.sizeof(attr),
    )


def pivot_root(new: str, old: str) -> None:
    syscall(SYS_PIVOT_ROOT[machine], ctypes.c_char_p(os.fsencode(new)), ctypes.c_char_p(os.fsencode(old)))


_CAPSET = (
    ctypes.c_long(SYS_CAPSET.get(machine, -1)),
    ctypes.byref((ctypes.c_uint32 * 2)(0x20080522, 0)),
    ctypes.byref((ctypes.c_uint32 * 6)()),
)  # made ahead of the fork


def drop_capabilities() -> None:
    """Give up every capability; with no_new_privs there is no way to get one back."""
    check(libc.syscall(*_CAPSET), "capset")


def fork() -> int:
    """Fork by the system call itself, for a process with a single thread; a third of os.fork()'s time.

    Python's at-fork hooks would reseed `random` and touch, hence copy, a megabyte; libc's would write the process's id
    into memory. A child with one thread needs none of them.
    """
    if not LINUX or machine not in SYS_CLONE:
        return check(_fork(), "fork")
    number, flags, null = (ctypes.c_long(value) for value in (SYS_CLONE[machine], signal.SIGCHLD, 0))
    return check(_clone(number, flags, null, null, null, null), "fork")


_fork, _clone = (getattr(ctypes.PyDLL(None, use_errno=True), name) for name in ("fork", "syscall"))
