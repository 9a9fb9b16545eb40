"""Landlock: which folders a check may read and write, where there are no namespaces that hide the rest."""

import ctypes
import os

from projected_grpo.sandbox import kernel

SYS_CREATE, SYS_ADD_RULE, SYS_RESTRICT = 444, 445, 446  # the same number on every architecture
VERSION_FLAG, RULE_PATH = 1, 1
READ_FILE, READ_DIR = 1 << 2, 1 << 3
WRITE_FILE, REMOVE_DIR, REMOVE_FILE, MAKE_DIR = 1 << 1, 1 << 4, 1 << 5, 1 << 7
MAKE_REG, MAKE_FIFO, REFER, TRUNCATE = 1 << 8, 1 << 10, 1 << 13, 1 << 14
# number of known file-system rights by version; the last holds for later ones
FILE_RIGHTS = (13, 14, 15, 15, 16)
NETWORK, SCOPES = 3, 3


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


def version() -> int:
    """Return the kernel's Landlock version, 0 where there is none."""
    try:
        return kernel.syscall(SYS_CREATE, None, 0, VERSION_FLAG)
    except OSError:
        return 0


def ruleset(readable: tuple[str, ...], box: str) -> int:
    """Return a descriptor of the rules: read below `readable`; in `box` files and folders of one's own."""
    known = version()
    if known < 1:
        raise OSError("this kernel has no Landlock")
    handled = (1 << FILE_RIGHTS[min(known, len(FILE_RIGHTS)) - 1]) - 1
    attributes = _Ruleset(handled, NETWORK if known >= 4 else 0, SCOPES if known >= 6 else 0)
    size = 8 if known < 4 else 16 if known < 6 else 24
    fd = kernel.syscall(SYS_CREATE, ctypes.byref(attributes), size, 0)
    write = WRITE_FILE | REMOVE_FILE | REMOVE_DIR | MAKE_REG | MAKE_FIFO | MAKE_DIR | REFER | TRUNCATE
    rules = [(path, READ_FILE | READ_DIR) for path in readable] + [(box, READ_FILE | READ_DIR | write)]
    for path, allowed in rules:
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
        if not os.path.isdir(path):
            allowed = READ_FILE | WRITE_FILE  # a device such as /dev/null
        rule = _PathRule(allowed & handled, parent)
        kernel.syscall(SYS_ADD_RULE, fd, RULE_PATH, ctypes.byref(rule), 0)
        os.close(parent)
    return fd


def restrict(fd: int) -> None:
    """Put the calling thread under the rules of `ruleset`, for good; no_new_privs must be set."""
    kernel.syscall(SYS_RESTRICT, fd, 0)
