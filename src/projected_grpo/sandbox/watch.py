"""Follow one check from the trusted side: take what it reports, count what it costs, see how it ended.

Time is counted over the whole check, and what a submission costs over all its checks: CPU seconds, and the seconds that
it neither ran nor waited for a free core. So a loaded machine makes no right answer wrong, and neither naps nor
heartbeats make a check last.
"""

import contextlib
import hashlib
import math
import os
import resource
import signal
import time
from dataclasses import dataclass
from typing import Any

from projected_grpo.sandbox import child, kernel, reasons, wire

OUTPUT = 16 << 20  # bytes of frames a check may report
TOKEN = 16
HEADER = TOKEN + 4
CPU, IDLE = 3.0, 9.0  # seconds of a submission, over all its checks
LEAST_CPU, KEPT_IDLE = (
    0.25,
    3.0,
)  # what a later check has at least; of the idle seconds the earlier ones leave it
BETWEEN = 0.1  # CPU seconds that a look may come late
WALL = 120.0  # seconds of a check in all, whatever it waits for; far beyond the others, whatever the load
UNSEEN = 0.5  # seconds between two looks that count; the rest this side was busy or stopped
RESTS = 0.3  # idle seconds after which a check that still does nothing takes no core from others
LOOKS = (0.005, 0.05)  # seconds between looks at a running check: the least and the most


@dataclass
class Budget:
    """What is left of a submission's seconds."""

    cpu: float = CPU
    idle: float = IDLE


class Watch:
    """One running check.

    frames: kind and text of each report; cause: None, or why it was ended: timeout, output, threads or forged;
    most: frames that an honest check sends; answer_cpu: seconds for each answer once the code is loaded, or None.
    """

    def __init__(
        self,
        reader: int,
        output: int | None,
        token: bytes,
        most: int,
        answer_cpu: float | None,
        budget: Budget,
        later: int,
    ):
        self.reader, self.output, self.token, self.most = reader, output, token, most
        self.answer_cpu, self.answered = answer_cpu, (0, 0.0)
        self.budget = budget
        self.cpu_limit = max(budget.cpu, LEAST_CPU)
        self.idle_limit = max(budget.idle - KEPT_IDLE * (later > 0), KEPT_IDLE / 2)
        self.frames: list[bytes] = []
        self.cause: str | None = None
        self.buffer = bytearray()
        self.total = 0
        self.pid: int | None = None
        self.started = False
        self.cpu = self.idle = 0.0
        self.waits: dict[str, int] = {}
        self.looked = time.monotonic()
        self.pause = LOOKS[0]
        self.resting = False
        self.wall = 0.0
        self.resident = 0

    def running(self, event: wire.Event) -> None:
        """Learn its process id in our own namespace, which a pidfd tells."""
        self.started = True
        if not event.fds:
            self.pid = event.number
        for fd in event.fds:
            with contextlib.suppress(OSError), open(f"/proc/self/fdinfo/{fd}", "rb") as file:
                for line in file:
                    if line.startswith(b"Pid:") and int(line[4:]) > 0:
                        self.pid = int(line[4:])
            os.close(fd)

    def look(self) -> None:
        """Take what it reported and hold it to its limits; where it must end, `cause` says why."""
        self.take()
        now = time.monotonic()
        # Before it runs the zygote may still be tidying up after the one before.
        passed = min(now - self.looked, UNSEEN) if self.started else 0.0
        self.looked = now
        before, self.cpu = self.cpu, max(self.cpu, self._cpu())
        still = passed - (self.cpu - before)
        still = max(0.0, still - self._waited()) if still > 0.001 else 0.0
        self.idle += still
        self.resting = self.idle > RESTS and still > 0.9 * passed
        self.wall += passed
        if self.cause is None and (
            self.cpu > self.cpu_limit or self.idle > self.idle_limit or self.wall > WALL
        ):
            self.cause = "timeout"
        if self.answer_cpu is not None and len(self.frames) > 1:
            if len(self.frames) != self.answered[0]:
                self.answered = len(self.frames), self.cpu
            if self.cause is None and self.cpu - self.answered[1] > self.answer_cpu:
                self.cause = "timeout"
        threads, self.resident = self._size()
        if self.cause is None and threads > child.THREADS:
            self.cause = "threads"
        # Sooner where there is more to take, or where several cores may soon use up what is left.
        near = (self.cpu_limit - self.cpu) / (os.cpu_count() or 1)
        self.pause = max(LOOKS[0], min(LOOKS[1], 2 * self.pause, near))

    def ended(self, event: wire.Event) -> dict[str, Any]:
        """Return what was seen of a check that is over."""
        self.take()
        used = max(self.cpu, event.seconds)
        self.budget.cpu = min(self.budget.cpu, CPU + BETWEEN - used)
        self.budget.idle -= self.idle
        status = event.number
        if self.cause is None and event.flag:
            self.cause = "output"
        if self.cause is None and status == -signal.SIGKILL and used > child.CPU_CHECK - 0.5:
            self.cause = "timeout"
        seen: dict[str, Any]
        seen = {"frames": self.frames, "cause": self.cause, "status": status, "cpu": used, "idle": self.idle}
        seen["reason"] = reasons.read(self.frames)
        if self.output is not None:
            seen["stdout"] = _content(self.output).lower()
        seen["file"] = _content(event.fds[0]).lower() if event.fds else b""
        for fd in event.fds:
            os.close(fd)
        return seen

    def take(self) -> None:
        """Read what is in the pipe, up to what an honest check may send."""
        while self.cause is None:
            try:
                data = os.read(self.reader, 1 << 16)
            except BlockingIOError:
                return
            if not data:
                return
            self.pause = LOOKS[0]
            self.total += len(data)
            self.buffer += data
            if self.total > OUTPUT:
                self.cause = "output"
            else:
                self._parse()

    def _parse(self) -> None:
        place = 0
        while len(self.buffer) - place >= HEADER:
            size = int.from_bytes(self.buffer[place + TOKEN : place + HEADER], "little")
            if not 0 < size <= OUTPUT or len(self.frames) == self.most:
                self.cause = "forged"
                return
            end = place + HEADER + size
            if len(self.buffer) < end:
                break
            frame = bytes(self.buffer[place + HEADER : end])
            if self.buffer[place : place + TOKEN] != sealed(frame, len(self.frames), self.token):
                self.cause = "forged"
                return
            self.frames.append(frame)
            place = end
        del self.buffer[:place]

    def _cpu(self) -> float:
        if self.pid is None or not kernel.LINUX:
            return 0.0
        try:
            return time.clock_gettime(~self.pid << 3 | 2)  # the CPU clock of that process
        except OSError:
            return 0.0

    def _waited(self) -> float:
        """Seconds since the last look that its threads could have run in and had no core; endless where one waits now.

        The kernel adds a wait up when it is over, and a thread's goes with the thread: neither shows what still waits,
        nor the waits of many short ones in turn.
        """
        if kernel.LINUX and not os.path.exists(f"/proc/{self.pid}"):
            return math.inf  # it has ended, and the zygote is still tidying up after it
        longest = 0
        waits_now = False
        with contextlib.suppress(OSError, ValueError, IndexError):
            for name in os.listdir(f"/proc/{self.pid}/task")[: child.THREADS]:
                with open(f"/proc/{self.pid}/task/{name}/schedstat", "rb") as file:
                    waited = int(file.read().split()[1])
                longest = max(longest, waited - self.waits.get(name, waited if self.waits else 0))
                self.waits[name] = waited
                with open(f"/proc/{self.pid}/task/{name}/stat", "rb") as file:
                    waits_now |= file.read().rsplit(b")", 1)[1].split()[0] == b"R"
        return math.inf if waits_now else longest / 1e9

    def _size(self) -> tuple[int, int]:
        """Return how many threads it has, and the bytes it holds."""
        with (
            contextlib.suppress(OSError, ValueError, IndexError),
            open(f"/proc/{self.pid}/stat", "rb") as file,
        ):
            fields = file.read().rsplit(b")", 1)[1].split()
            return int(fields[17]), int(fields[21]) * resource.getpagesize()
        return 0, 0


def sealed(frame: bytes, number: int, token: bytes) -> bytes:
    """Return what stands before the frame of that number."""
    salt = number.to_bytes(4, "little")
    return hashlib.blake2b(frame, digest_size=TOKEN, key=token, salt=salt).digest()


def _content(fd: int) -> bytes:
    """Return the start of a file; no more than a check may write to it."""
    return os.pread(fd, child.FILES + 1, 0)
