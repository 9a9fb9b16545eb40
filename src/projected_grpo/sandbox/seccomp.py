"""The system calls that a check may make: an allow list as a seccomp filter; all others fail with EPERM.

Left out on purpose: new processes (threads are allowed), exec, sockets, signals to anyone, ptrace and reading other
processes' memory, mounts, namespaces, System V IPC, memfd_create (memory that no limit counts), io_uring, bpf, locks
and leases (on a file that every check may read they are a letter box), modes, owners and times of files and truncation
by name (Landlock does not guard those, the last before its version 3).
"""

import ctypes
import struct

from projected_grpo.sandbox import kernel

# name: (x86_64, aarch64); None where the architecture has no such call
ALLOWED: dict[str, tuple[int | None, int | None]] = {
    "read": (0, 63), "write": (1, 64), "close": (3, 57), "stat": (4, None), "fstat": (5, 80),
    "lstat": (6, None), "poll": (7, None), "lseek": (8, 62), "mmap": (9, 222), "mprotect": (10, 226),
    "munmap": (11, 215), "brk": (12, 214), "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139), "pread64": (17, 67), "pwrite64": (18, 68), "readv": (19, 65), "writev": (20, 66),
    "access": (21, None), "pipe": (22, None), "select": (23, None), "sched_yield": (24, 124),
    "mremap": (25, 216), "mincore": (27, 232), "madvise": (28, 233), "dup": (32, 23), "dup2": (33, None),
    "nanosleep": (35, 101), "getitimer": (36, 102), "alarm": (37, None), "setitimer": (38, 103),
    "getpid": (39, 172), "exit": (60, 93), "uname": (63, 160),
    "fsync": (74, 82), "fdatasync": (75, 83), "ftruncate": (77, 46),
    "getdents": (78, None), "getcwd": (79, 17), "chdir": (80, 49), "fchdir": (81, 50), "rename": (82, None),
    "mkdir": (83, None), "rmdir": (84, None), "creat": (85, None), "link": (86, None), "unlink": (87, None),
    "symlink": (88, None), "readlink": (89, None), "umask": (95, 166), "gettimeofday": (96, 169),
    "getrlimit": (97, 163), "getrusage": (98, 165), "sysinfo": (99, 179), "times": (100, 153),
    "getuid": (102, 174), "getgid": (104, 176), "geteuid": (107, 175), "getegid": (108, 177),
    "getppid": (110, 173), "getpgrp": (111, None), "getgroups": (115, 158), "getresuid": (118, 148),
    "getresgid": (120, 150), "getpgid": (121, 155), "getsid": (124, 156), "rt_sigpending": (127, 136),
    "rt_sigtimedwait": (128, 137), "rt_sigsuspend": (130, 133), "sigaltstack": (131, 132), "statfs": (137, 43),
    "fstatfs": (138, 44), "sched_getparam": (143, 121), "sched_getscheduler": (145, 120),
    "sched_get_priority_max": (146, 125), "sched_get_priority_min": (147, 126), "setrlimit": (160, 164),
    "gettid": (186, 178), "time": (201, None), "futex": (202, 98),
    "sched_getaffinity": (204, 123), "epoll_create": (213, None), "getdents64": (217, 61),
    "set_tid_address": (218, 96), "restart_syscall": (219, 128), "fadvise64": (221, 223),
    "clock_gettime": (228, 113), "clock_getres": (229, 114), "clock_nanosleep": (230, 115),
    "exit_group": (231, 94), "epoll_wait": (232, None), "epoll_ctl": (233, 21),
    "mkdirat": (258, 34), "newfstatat": (262, 79), "unlinkat": (263, 35), "renameat": (264, 38),
    "linkat": (265, 37), "symlinkat": (266, 36), "readlinkat": (267, 78), "faccessat": (269, 48),
    "pselect6": (270, 72), "ppoll": (271, 73), "set_robust_list": (273, 99), "epoll_pwait": (281, 22),
    "eventfd": (284, None), "fallocate": (285, 47), "eventfd2": (290, 19), "epoll_create1": (291, 20),
    "dup3": (292, 24), "pipe2": (293, 59), "preadv": (295, 69), "pwritev": (296, 70), "renameat2": (316, 276),
    "getrandom": (318, 278), "membarrier": (324, 283), "copy_file_range": (326, 285), "statx": (332, 291),
    "rseq": (334, 293), "close_range": (436, 436), "faccessat2": (439, 439), "futex_waitv": (449, 449),
    "socketpair": (53, 199), "sendto": (44, 206), "recvfrom": (45, 207), "shutdown": (48, 210),
}  # fmt: skip
# asyncio wakes its loop through a socketpair of its own; a socket to anyone else cannot be made.

TIMERS = ("alarm", "setitimer")  # a signal's handler sees the frame that it interrupts

# Calls decided by an argument.
CLONE = (56, 220)
CLONE3 = (435, 435)
IOCTL = (16, 29)
PRLIMIT = (302, 261)
FCNTL = (72, 25)
OPEN = (2, None)
OPENAT = (257, 56)
CLONE_THREAD = 0x00010000
IOCTLS = (0x5401, 0x5450, 0x5451, 0x5421, 0x541B)  # TCGETS, FIONCLEX, FIOCLEX, FIONBIO, FIONREAD
FCNTLS = (0, 1, 2, 3, 1030)  # F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC
F_SETFL, O_ASYNC = 4, 0x2000
O_ACCMODE, O_TRUNC = 3, 0x200
# Truncating while opening for reading, and the access mode that asks for neither, pass Landlock before version 3.
OPENS_REFUSED = (O_TRUNC, O_ACCMODE, O_TRUNC | O_ACCMODE)

ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
LOAD, EQUAL, GREATER_EQUAL, AND, RETURN, JUMP = 0x20, 0x15, 0x35, 0x54, 0x06, 0x05
ARG0_LOW, ARG1_LOW, ARG2_LOW = 16, 24, 32


def supported() -> bool:
    return kernel.machine in ARCHITECTURES


def program(without: tuple[str, ...] = ()) -> bytes:
    """Return the filter as BPF instructions for this machine; `without` names calls of the list to refuse."""
    column, arch = ARCHITECTURES[kernel.machine]

    def op(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("HBBI", code, yes, no, value)

    def one_of(values: tuple[int, ...], otherwise: list[bytes], found: int) -> list[bytes]:
        """Go to `otherwise` unless the loaded value is one of `values`: then return `found`."""
        jump = len(values) + len(otherwise)
        tests = [op(EQUAL, value, jump - place - 1, 0) for place, value in enumerate(values)]
        return [*tests, *otherwise, op(RETURN, found)]

    def opening(flags: int) -> list[bytes]:
        return [
            op(LOAD, flags),
            op(AND, O_TRUNC | O_ACCMODE),
            *one_of(OPENS_REFUSED, [op(RETURN, ALLOW)], EPERM),
        ]

    special = {
        CLONE[column]: [
            op(LOAD, ARG0_LOW), op(AND, CLONE_THREAD), op(EQUAL, CLONE_THREAD, 0, 1),
            op(RETURN, ALLOW), op(RETURN, EPERM),
        ],
        CLONE3[column]: [op(RETURN, ENOSYS)],  # its flags are out of sight; libc falls back to clone
        IOCTL[column]: [op(LOAD, ARG1_LOW), *one_of(IOCTLS, [op(RETURN, EPERM)], ALLOW)],
        FCNTL[column]: [
            op(LOAD, ARG1_LOW), op(EQUAL, F_SETFL, 0, 5),
            op(LOAD, ARG2_LOW), op(AND, O_ASYNC), op(EQUAL, 0, 0, 1), op(RETURN, ALLOW), op(RETURN, EPERM),
            *one_of(FCNTLS, [op(RETURN, EPERM)], ALLOW),
        ],
        OPEN[column]: opening(ARG1_LOW),
        OPENAT[column]: opening(ARG2_LOW),
        PRLIMIT[column]: [
            op(LOAD, ARG0_LOW), op(EQUAL, 0, 0, 1), op(RETURN, ALLOW), op(RETURN, EPERM),
        ],
    }  # fmt: skip
    bodies = {
        number: [op(RETURN, ALLOW)]
        for number in (pair[column] for name, pair in ALLOWED.items() if name not in without)
        if number is not None
    }
    bodies |= {number: body for number, body in special.items() if number is not None}
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


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def install(blob: bytes) -> None:
    """Put the calling thread (and all it starts) under the filter `blob`, for good."""
    buffer = (ctypes.c_char * len(blob)).from_buffer_copy(blob)
    program = _Program(len(blob) // 8, ctypes.addressof(buffer))
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    kernel.prctl(kernel.PR_SET_SECCOMP, 2, ctypes.byref(program))
