"""Follow one check from outside: collect what it reports, enforce time, kill it, reap it."""

import os
import select
import signal
import socket
import time

from projected_grpo.sandbox import child, kernel, room

OUTPUT = 16 << 20  # bytes of frames a check may report
TICK = 0.1  # seconds between looks at a running check
IDLE = 5.0  # seconds a check may sleep at a stretch
WALL = 120.0  # seconds; a backstop: under load a right answer is slow
TOKEN = 16
HEADER = TOKEN + 4


class Watch:
    """Follow one child to its end: collect frames, enforce time, kill, reap.

    frames: kind and text of each report; cause: None, or why it was ended (timeout, output, forged);
    status: exit status, negative for a signal; cpu: seconds. limit: CPU seconds of a call; folder: its working folder
    where no file system of its own bounds it.
    """

    def __init__(
        self, pid: int, reader: int, token: bytes, control: socket.socket, limit: float, folder: str | None
    ):
        self.limit, self.folder = limit, folder
        self.pid, self.reader, self.token, self.control = pid, reader, token, control
        self.frames: list[bytes] = []
        self.cause: str | None = None
        self.buffer = bytearray()
        self.total = 0
        self.clock = ~pid << 3 | 2  # the CPU clock of that process
        self.call_cpu = 0.0

    def run(self) -> None:
        pidfd = os.pidfd_open(self.pid) if kernel.LINUX else None
        os.set_blocking(self.reader, False)
        poll = select.poll()
        poll.register(self.reader, select.POLLIN)
        poll.register(self.control.fileno(), 0)
        if pidfd is not None:
            poll.register(pidfd, select.POLLIN)
        started = idle_since = time.monotonic()
        last_cpu = 0.0
        while True:
            ready = dict(poll.poll(TICK * 1000))
            if self.control.fileno() in ready:
                os.kill(self.pid, signal.SIGKILL)  # nobody waits for the answer
                os.waitpid(self.pid, 0)
                raise EOFError
            if self.reader in ready and not self._read():
                poll.unregister(self.reader)
                if pidfd is None:
                    break  # it ended, or will be ended: nothing more can come
            if pidfd in ready or self.cause is not None:
                break
            if ready:
                continue
            now, cpu = time.monotonic(), self._cpu()
            if cpu - last_cpu > 0.0005:
                idle_since, last_cpu = now, cpu
            if cpu - self.call_cpu > self.limit or now - idle_since > IDLE or now - started > WALL:
                self.cause = "timeout"
                break
            if self.folder is not None and room.size(self.folder) > child.DISK:
                self.cause = "output"
                break
        if pidfd is None:
            time.sleep(TICK / 10)  # for its exit status, where it has just ended
        if pidfd not in ready:
            os.kill(self.pid, signal.SIGKILL)
        _, status, usage = os.wait4(self.pid, 0)
        if pidfd is not None:
            os.close(pidfd)
        if self.cause is None:
            while self._read():
                pass
        self.status = os.waitstatus_to_exitcode(status)
        self.cpu = usage.ru_utime + usage.ru_stime
        if self.cause is None and self.status == -signal.SIGKILL and self.cpu > child.CPU_CHECK - 0.5:
            self.cause = "timeout"

    def _cpu(self) -> float:
        try:
            return time.clock_gettime(self.clock)
        except OSError:
            return 0.0

    def _read(self) -> bool:
        """Take what is in the pipe; return whether it is still open and has given something."""
        try:
            data = os.read(self.reader, 1 << 16)
        except BlockingIOError:
            return False
        self.total += len(data)
        self.buffer += data
        if self.total > OUTPUT:
            self.cause = "output"
        else:
            self._parse()
        return bool(data) and self.cause is None

    def _parse(self) -> None:
        while len(self.buffer) >= HEADER:
            if self.buffer[:TOKEN] != self.token:
                self.cause = "forged"
                return
            size = int.from_bytes(self.buffer[TOKEN:HEADER], "little")
            if size > OUTPUT:
                self.cause = "forged"
                return
            if len(self.buffer) < HEADER + size:
                return
            self.frames.append(bytes(self.buffer[HEADER : HEADER + size]))
            del self.buffer[: HEADER + size]
            self.call_cpu = self._cpu()
