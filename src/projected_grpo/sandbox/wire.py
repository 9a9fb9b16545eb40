"""Messages between the trusted side and a zygote, both trusted: length, then marshal."""

import marshal
import socket
import struct
from typing import Any

HEADER = struct.Struct("<I")


def pack(message: Any) -> bytes:
    data = marshal.dumps(message)
    return HEADER.pack(len(data)) + data


def receive(connection: socket.socket) -> Any:
    """Return the next message. Raises EOFError where the other side is gone."""
    (size,) = HEADER.unpack(_exactly(connection, HEADER.size))
    return marshal.loads(_exactly(connection, size))


def _exactly(connection: socket.socket, size: int) -> bytes:
    buffer = bytearray(size)
    view = memoryview(buffer)
    while view:
        count = connection.recv_into(view)
        if not count:
            raise EOFError
        view = view[count:]
    return bytes(buffer)
