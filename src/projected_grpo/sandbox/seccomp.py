"""The system calls that a check may make: an allow list as a seccomp filter; all others fail with EPERM.

Left out on purpose: new processes (threads are allowed), exec, sockets, signals to anyone, ptrace and reading other
processes' memory, mounts, namespaces, System V IPC, memory that no limit counts (memfd_create, shared memory without a
file), io_uring, bpf; modes, owners and times of files and truncation by name (Landlock does not guard those, the last
before its version 3).

And whatever has a name or a number on the whole host, by which two checks could find each other: locks and leases on
files that all may read, futexes that are not private, pipes and sockets (their inode numbers come from one counter,
`fifo` stands in for them), free space of a file system, what is in the page cache, how much the host runs and holds,
other processes' ids and clocks.
"""

import ctypes
import struct
from typing import Any

from projected_grpo.sandbox import kernel

# name: (x86_64, aarch64); None where the architecture has no such call
ALLOWED: dict[str, tuple[int | None, int | None]] = {
    "read": (0, 63), "write": (1, 64), "close": (3, 57), "stat": (4, None), "fstat": (5, 80),
    "lstat": (6, None), "poll": (7, None), "lseek": (8, 62),
    "munmap": (11, 215), "brk": (12, 214), "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139), "pread64": (17, 67), "pwrite64": (18, 68), "readv": (19, 65), "writev": (20, 66),
    "access": (21, None), "select": (23, None), "sched_yield": (24, 124),
    "mremap": (25, 216), "dup": (32, 23), "dup2": (33, None),
    "nanosleep": (35, 101), "getitimer": (36, 102), "alarm": (37, None), "setitimer": (38, 103),
    "getpid": (39, 172), "exit": (60, 93), "uname": (63, 160),
    "ftruncate": (77, 46),
    "getdents": (78, None), "getcwd": (79, 17), "chdir": (80, 49), "fchdir": (81, 50), "rename": (82, None),
    "mkdir": (83, None), "rmdir": (84, None), "creat": (85, None), "link": (86, None), "unlink": (87, None),
    "symlink": (88, None), "readlink": (89, None), "umask": (95, 166), "gettimeofday": (96, 169),
    "getrlimit": (97, 163), "getrusage": (98, 165), "times": (100, 153),
    "getuid": (102, 174), "getgid": (104, 176), "geteuid": (107, 175), "getegid": (108, 177),
    "getppid": (110, 173), "getpgrp": (111, None), "getgroups": (115, 158), "getresuid": (118, 148),
    "getresgid": (120, 150), "rt_sigpending": (127, 136),
    "rt_sigtimedwait": (128, 137), "rt_sigsuspend": (130, 133), "sigaltstack": (131, 132),
    "sched_get_priority_max": (146, 125), "sched_get_priority_min": (147, 126), "setrlimit": (160, 164),
    "gettid": (186, 178), "time": (201, None),
    "epoll_create": (213, None), "getdents64": (217, 61),
    "restart_syscall": (219, 128),
    "exit_group": (231, 94), "epoll_wait": (232, None), "epoll_ctl": (233, 21),
    "mkdirat": (258, 34), "newfstatat": (262, 79), "unlinkat": (263, 35), "renameat": (264, 38),
    "linkat": (265, 37), "symlinkat": (266, 36), "readlinkat": (267, 78), "faccessat": (269, 48),
    "pselect6": (270, 72), "ppoll": (271, 73), "set_robust_list": (273, 99), "epoll_pwait": (281, 22),
    "eventfd": (284, None), "fallocate": (285, 47), "eventfd2": (290, 19), "epoll_create1": (291, 20),
    "dup3": (292, 24), "preadv": (295, 69), "pwritev": (296, 70), "renameat2": (316, 276),
    "getrandom": (318, 278), "copy_file_range": (326, 285),
    "rseq": (334, 293), "close_range": (436, 436), "faccessat2": (439, 439),
}  # fmt: skip

# Decided by an argument, or answered without being made.
SPECIAL: dict[str, tuple[int | None, int | None]] = {
    "clone": (56, 220), "clone3": (435, 435), "unshare": (272, 97), "ioctl": (16, 29), "prlimit": (302, 261),
    "fcntl": (72, 25), "open": (2, None), "openat": (257, 56), "mknod": (133, None), "mknodat": (259, 33),
    "futex": (202, 98), "mmap": (9, 222), "mprotect": (10, 226), "madvise": (28, 233),
    "clock_gettime": (228, 113), "clock_getres": (229, 114), "clock_nanosleep": (230, 115),
    "sched_getparam": (143, 121), "sched_getscheduler": (145, 120), "sched_getaffinity": (204, 123),
    "getpgid": (121, 155), "getsid": (124, 156), "fsync": (74, 82), "fdatasync": (75, 83), "fadvise64": (221, 223),
    "msync": (26, 227),
}  # fmt: skip

# Where the answer exists in the submission's process alone: no signal's handler, which sees the frame that it
# interrupts, and no native code beyond what is loaded.
ALONE = ("alarm", "setitimer", "rt_sigaction")
# Where that process holds the canonical solution: no thread, no file, nothing that could be made or changed.
MUTE = (
    *ALONE, "rename", "renameat", "renameat2", "mkdir", "mkdirat", "rmdir", "creat", "link", "linkat", "unlink",
    "unlinkat", "symlink", "symlinkat", "fallocate", "ftruncate",
)  # fmt: skip
# Ids that are the host's where no namespace has its own: answered with 0.
IDS = ("getpid", "getppid", "gettid", "getpgrp", "getpgid", "getsid")

CLONE_THREAD = 0x00010000
IOCTLS = (0x5401, 0x5450, 0x5451, 0x5421, 0x541B)  # TCGETS, FIONCLEX, FIOCLEX, FIONBIO, FIONREAD
FCNTLS = (0, 1, 2, 3, 1030)  # F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC
F_SETFL, O_ASYNC = 4, 0x2000
O_ACCMODE, O_CREAT, O_TRUNC, O_TMPFILE = 3, 0x40, 0x200, 0x400000
# Truncating while opening for reading, and the access mode that asks for neither, pass Landlock before version 3.
OPENS_REFUSED = (O_TRUNC, O_ACCMODE, O_TRUNC | O_ACCMODE)
FILE_TYPE, FIFO = 0o170000, 0o010000
FUTEX_PRIVATE, FUTEX_WAITS, FUTEX_WAKE = 128, (0, 9), 1
# Advice on memory of one's own: normal, random, sequential, not needed, free, huge pages or not, dumps or not.
ADVICE = (0, 1, 2, 4, 8, 14, 15, 16, 17)
MAP_TYPE, MAP_SHARED, MAP_ANONYMOUS = 0x0F, 0x01, 0x20
CLOCKS = 16  # numbers from here on are other threads' and processes' clocks
PROT_EXEC = 4

ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
ALLOW, KILL = 0x7FFF0000, 0x80000000
EPERM, EAGAIN, EINVAL, ENOSYS = 0x00050001, 0x0005000B, 0x00050016, 0x00050026
ZERO = 0x00050000  # the call is not made and returns 0
LOAD, EQUAL, GREATER_EQUAL, AND, RETURN, JUMP = 0x20, 0x15, 0x35, 0x54, 0x06, 0x05
ARGUMENTS = (16, 24, 32, 40)  # offsets of the low halves


def supported() -> bool:
    return kernel.machine in ARCHITECTURES


def op(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    """Return one BPF instruction."""
    return struct.pack("HBBI", code, yes, no, value)


def when(
    argument: int, values: tuple[int, ...], found: int, otherwise: int, mask: int | None = None
) -> list[bytes]:
    """Return `found` where the argument, masked, is one of `values`, else `otherwise`."""
    tests = [op(EQUAL, value, len(values) - place, 0) for place, value in enumerate(values)]
    masked = [] if mask is None else [op(AND, mask)]
    return [op(LOAD, ARGUMENTS[argument]), *masked, *tests, op(RETURN, otherwise), op(RETURN, found)]


def below(argument: int, bound: int, otherwise: int) -> list[bytes]:
    """Allow where the argument is below `bound`, else return `otherwise`."""
    tests = [op(GREATER_EQUAL, bound, 1, 0), op(RETURN, ALLOW), op(RETURN, otherwise)]
    return [op(LOAD, ARGUMENTS[argument]), *tests]


def _special(kind: str, own_box: bool) -> dict[str, list[bytes]]:
    """What is answered to each call of SPECIAL. kind: plain, alone or mute."""
    mute = kind == "mute"
    # A mute check opens for reading alone.
    mask, values = (
        (O_ACCMODE | O_CREAT | O_TRUNC | O_TMPFILE, (0,)) if mute else (O_TRUNC | O_ACCMODE, OPENS_REFUSED)
    )
    if not (mute or own_box):
        # A file without a name changes no folder's time: what is counted up by these would go unseen, hence unblurred.
        mask |= O_TMPFILE
        values = (*values, *(O_TMPFILE | value for value in (0, 1, 2, *values)))
    opens = (ALLOW, EPERM, mask) if mute else (EPERM, ALLOW, mask)
    # Where the check's own folder holds no code nothing has to be refused: see room.mount_box.
    maps = (
        [op(RETURN, ALLOW)] if kind == "plain" or own_box else when(2, (PROT_EXEC,), EPERM, ALLOW, PROT_EXEC)
    )
    # Shared memory without a file may be held unmapped, where nothing counts it: see maps.
    hidden = [
        op(LOAD, ARGUMENTS[3]), op(AND, MAP_TYPE | MAP_ANONYMOUS), op(EQUAL, MAP_SHARED | MAP_ANONYMOUS, 0, 1),
        op(RETURN, EPERM),
    ]  # fmt: skip
    fifos = (EPERM if mute else ALLOW, EPERM, FILE_TYPE)
    own = (0,), ALLOW, EPERM
    zero = [op(RETURN, ZERO)]
    return {
        "clone": when(0, (CLONE_THREAD,), EPERM if mute else ALLOW, EPERM, CLONE_THREAD),
        "clone3": [op(RETURN, ENOSYS)],  # its flags are out of sight; libc falls back to clone
        "unshare": when(0, (CLONE_THREAD,), ALLOW, EPERM),  # changes nothing, fails while there are other threads
        "ioctl": when(1, IOCTLS, ALLOW, EPERM),
        "prlimit": when(0, *own),
        "fcntl": [
            op(LOAD, ARGUMENTS[1]), op(EQUAL, F_SETFL, 0, 5),
            op(LOAD, ARGUMENTS[2]), op(AND, O_ASYNC), op(EQUAL, 0, 0, 1), op(RETURN, ALLOW), op(RETURN, EPERM),
            *when(1, FCNTLS, ALLOW, EPERM),
        ],
        "open": when(1, values, *opens),
        "openat": when(2, values, *opens),
        "mknod": when(1, (FIFO,), *fifos),
        "mknodat": when(2, (FIFO,), *fifos),
        # Where the value has changed a waiter looks again: so one that waits for a thread's end (the kernel wakes it
        # as if it were shared) goes round until that has come.
        "futex": [
            op(LOAD, ARGUMENTS[1]), op(AND, FUTEX_PRIVATE), op(EQUAL, 0, 1, 0), op(RETURN, ALLOW),
            op(LOAD, ARGUMENTS[1]), op(AND, FUTEX_PRIVATE - 1), op(EQUAL, FUTEX_WAKE, 0, 1), op(RETURN, ZERO),
            *when(1, FUTEX_WAITS, EAGAIN, EPERM, FUTEX_PRIVATE - 1),
        ],
        "mmap": [*hidden, *maps],
        "mprotect": maps,
        "madvise": when(2, ADVICE, ALLOW, EINVAL),
        "clock_gettime": below(0, CLOCKS, EINVAL),
        "clock_getres": below(0, CLOCKS, EINVAL),
        "clock_nanosleep": below(0, CLOCKS, EINVAL),
        "sched_getparam": when(0, *own),
        "sched_getscheduler": when(0, *own),
        "sched_getaffinity": when(0, *own),
        "getpgid": when(0, *own),
        "getsid": when(0, *own),
        "fsync": zero,  # a check's files need not outlive the machine, and disks are everybody's
        "fdatasync": zero,
        "msync": zero,
        "fadvise64": zero,
    }  # fmt: skip


def program(kind: str = "plain", own: bool = True) -> bytes:
    """Return the filter as BPF instructions for this machine.

    kind: plain; alone, of a check whose answer exists in its process alone; mute, of one that holds the canonical
    solution. own: process ids are of a namespace that the check has for itself, and so is its folder, where
    nothing can be mapped as code.
    """
    column, arch = ARCHITECTURES[kernel.machine]
    without = {"plain": (), "alone": ALONE, "mute": MUTE}[kind]
    bodies: dict[Any, list[bytes]] = {
        pair[column]: [op(RETURN, ALLOW)] for name, pair in ALLOWED.items() if name not in without
    }
    bodies |= {SPECIAL[name][column]: body for name, body in _special(kind, own).items()}
    if not own:
        bodies |= {(ALLOWED | SPECIAL)[name][column]: [op(RETURN, ZERO)] for name in IDS}
    bodies.pop(None, None)  # calls that this architecture does not have
    ranges = [(number, bodies.get(number, [op(RETURN, EPERM)])) for number in range(max(bodies) + 2)]
    starts = [
        pair
        for pair, before in zip(ranges, [None, *ranges], strict=False)
        if before is None or pair[1] != before[1]
    ]

    def tree(part: list) -> list[bytes]:
        """Binary search by number: the kernel follows a filter once per call number when it is installed."""
        if len(part) == 1:
            return part[0][1]
        middle = len(part) // 2
        low, high = tree(part[:middle]), tree(part[middle:])
        if len(low) < 256:
            return [op(GREATER_EQUAL, part[middle][0], len(low), 0), *low, *high]
        return [op(GREATER_EQUAL, part[middle][0], 0, 1), op(JUMP, len(low)), *low, *high]

    out = [op(LOAD, 4), op(EQUAL, arch, 1, 0), op(RETURN, KILL), op(LOAD, 0)]
    if kernel.machine == "x86_64":
        out += [op(GREATER_EQUAL, 0x40000000, 0, 1), op(RETURN, KILL)]  # the x32 calls are a way round
    return b"".join(out + tree(starts))


class Program(ctypes.Structure):
    """A filter as the kernel takes it."""

    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def packed(blob: bytes) -> Program:
    """Return what `install` takes, made ahead of the fork."""
    buffer = (ctypes.c_char * len(blob)).from_buffer_copy(blob)
    program = Program(len(blob) // 8, ctypes.addressof(buffer))
    program.kept = buffer
    return program


def install(program: Program) -> None:
    """Put the calling thread (and all it starts) under the filter, for good; no_new_privs must be set."""
    kernel.prctl(kernel.PR_SET_SECCOMP, 2, ctypes.byref(program))
