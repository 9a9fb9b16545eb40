"""Anonymous memory of a check is private.

Memory that is mapped as shared is the kernel's until its last page is unmapped: a check that has written it and unmaps
all but one page holds it, and neither its address space nor what it is seen to hold says so. No check has a process to
share memory with, so `mmap.mmap(-1, ...)` loses nothing; the system call itself is refused (seccomp).
"""

import mmap
from typing import Any

_RIGHTS = {mmap.ACCESS_READ: mmap.PROT_READ}


class Mapping(mmap.mmap):
    """`mmap.mmap`, private where no file is behind it."""

    def __new__(
        cls,
        fileno: int,
        length: int,
        flags: int = mmap.MAP_SHARED,
        prot: int = mmap.PROT_READ | mmap.PROT_WRITE,
        access: int = mmap.ACCESS_DEFAULT,
        **rest: Any,
    ) -> "Mapping":
        if fileno == -1:
            flags = flags & ~mmap.MAP_SHARED | mmap.MAP_PRIVATE
            prot, access = _RIGHTS.get(access, prot), mmap.ACCESS_DEFAULT
        return super().__new__(cls, fileno, length, flags, prot, access, **rest)


Mapping.__name__ = Mapping.__qualname__ = "mmap"
Mapping.__module__ = "mmap"


def stand_in() -> None:
    """Make `mmap.mmap` of this process do without shared memory that has no file."""
    mmap.mmap = Mapping  # type: ignore[assignment, misc]
