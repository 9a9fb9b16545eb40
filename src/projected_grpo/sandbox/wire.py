"""Messages between the trusted side and a zygote: one byte with descriptors there, a few numbers back.

Nothing of a submission is in them. What a check needs travels in a file of its own whose descriptor is passed through;
what it reports goes from the check to the trusted side. So a zygote's memory, which every check inherits, never held
any of it.
"""

import array
import socket
import struct
from typing import NamedTuple

# to a zygote: KILL, or START with the flags below and the descriptors of payload, report and, if STDOUT, output
KILL, START, STDOUT = 0, 1, 2
KIND, FILE = 4, 16  # times the place in KINDS; times the number, from 1, of a file of room.RESULTS
KINDS = ("plain", "alone", "mute")  # see seccomp.program
READY, FAILED, RUNNING, ENDED = range(4)  # from a zygote
_EVENT = struct.Struct("<iiid")
MOST = 4  # descriptors in a message


class Event(NamedTuple):
    """READY; FAILED, `text` says why; RUNNING with a pidfd; ENDED: status, whether it filled the disk, CPU seconds."""

    kind: int
    number: int = 0
    flag: int = 0
    seconds: float = 0.0
    fds: tuple[int, ...] = ()
    text: str = ""


def command(connection: socket.socket, flags: int, fds: tuple[int, ...] = ()) -> None:
    _send(connection, bytes([flags]), fds)


def receive_command(connection: socket.socket) -> tuple[int, tuple[int, ...]]:
    """Return flags and descriptors. Raises EOFError where the other side is gone."""
    data, fds = _receive(connection, 1)
    return data[0], fds


def tell(connection: socket.socket, event: Event) -> None:
    text = event.text.encode("utf-8", "replace")
    number = len(text) if text else event.number
    _send(connection, _EVENT.pack(event.kind, number, event.flag, event.seconds) + text, event.fds)


def receive_event(connection: socket.socket) -> Event:
    """Return the next event. Raises EOFError where the zygote is gone."""
    data, fds = _receive(connection, _EVENT.size)
    kind, number, flag, seconds = _EVENT.unpack(data)
    text = _receive(connection, number)[0].decode() if kind == FAILED and number else ""
    return Event(kind, number, flag, seconds, fds, text)


def _send(connection: socket.socket, data: bytes, fds: tuple[int, ...]) -> None:
    extra = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    sent = connection.sendmsg([data], extra)
    if sent < len(data):
        connection.sendall(data[sent:])


def _receive(connection: socket.socket, size: int) -> tuple[bytes, tuple[int, ...]]:
    data, found = b"", array.array("i")
    while len(data) < size:
        part, extra, _, _ = connection.recvmsg(size - len(data), socket.CMSG_SPACE(MOST * found.itemsize))
        for level, kind, content in extra:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                found.frombytes(content[: len(content) - len(content) % found.itemsize])
        if not part:
            raise EOFError
        data += part
    return data, tuple(found)
