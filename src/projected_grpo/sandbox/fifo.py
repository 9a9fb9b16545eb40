"""Pipes and socket pairs for checks, made of FIFOs in the check's own folder.

The kernel numbers all pipes and sockets of the host by one counter, which a check could read and move. A FIFO's number
is its file system's. asyncio wakes its loop through such a pair.
"""

import itertools
import os
import socket
from collections.abc import Callable


class End:
    """One end of a pair: as much of a socket as a byte stream to its other end needs."""

    def __init__(self, source: int, sink: int):
        self.source, self.sink = source, sink

    def fileno(self) -> int:
        return self.source

    def setblocking(self, flag: bool) -> None:
        os.set_blocking(self.source, flag)
        os.set_blocking(self.sink, flag)

    def recv(self, size: int) -> bytes:
        return os.read(self.source, size)

    def send(self, data: bytes) -> int:
        return os.write(self.sink, data)

    def sendall(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self.sink, view) :]

    def close(self) -> None:
        for fd in (self.source, self.sink):
            if fd >= 0:
                os.close(fd)
        self.source = self.sink = -1

    def __enter__(self) -> "End":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def stand_in(folder: str) -> None:
    """Make `os.pipe` and `socket.socketpair` of this process do without pipes and sockets of the kernel's."""
    os.pipe = _pipes(folder)
    socket.socketpair = _pairs(os.pipe)  # type: ignore[assignment]


def _pipes(folder: str) -> Callable[[], tuple[int, int]]:
    names = itertools.count()

    def pipe() -> tuple[int, int]:
        """Return the descriptors (reading end, writing end) of a new FIFO without a name."""
        path = os.path.join(folder, f".fifo{next(names)}")
        os.mkfifo(path, 0o600)
        try:
            source = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            sink = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        finally:
            os.unlink(path)
        os.set_blocking(source, True)
        return source, sink

    return pipe


def _pairs(pipe: Callable[[], tuple[int, int]]) -> Callable[..., tuple[End, End]]:
    def socketpair(*_: object, **__: object) -> tuple[End, End]:
        """Return two connected ends, whatever kind of socket is asked for."""
        (here, there_sink), (there, here_sink) = pipe(), pipe()
        return End(here, here_sink), End(there, there_sink)

    return socketpair
