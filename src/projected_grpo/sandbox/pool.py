"""The trusted side of the sandbox: starts zygotes of the strongest layer that works here and hands out jobs."""

import contextlib
import select
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

from projected_grpo.sandbox.levels import STRONG, choose_level, probe
from projected_grpo.sandbox.watch import Budget, Watch
from projected_grpo.sandbox.wire import ENDED, RUNNING
from projected_grpo.sandbox.worker import Zygote, ZygoteDied

ATTEMPTS = 3  # of a job whose zygote died
MORE = 8  # times as many zygotes, at most, while checks do nothing but wait
NOT_LOCKED_IN = 70  # exit status of a check that could not give up its rights


class Run:
    """One job on one zygote, check after check."""

    def __init__(self, zygote: Zygote, key: Any, job: dict[str, Any], attempt: int):
        self.zygote, self.key, self.job, self.attempt = zygote, key, job, attempt
        self.seen: list[dict[str, Any]] = []
        self.budget = Budget()
        self.killed = False
        self.watch: Watch | None = None
        self._next()

    def _next(self) -> None:
        place = len(self.seen)
        checks = self.job["checks"]
        self.killed = False
        self.watch = self.zygote.start(self.job, checks[place], self.budget, len(checks) - place - 1)

    def look(self) -> None:
        self.watch.look()
        if self.watch.cause is not None and not self.killed:
            self.killed = True
            self.zygote.end_check()

    def heard(self) -> bool:
        """Take what the zygote says; return whether the job is done. Raises ZygoteDied."""
        event = self.zygote.receive()
        if event.kind == RUNNING:
            self.watch.running(event)
            return False
        if event.kind != ENDED:
            raise ZygoteDied
        found = self.watch.ended(event)
        self.watch.close()
        self.watch = None
        if found["status"] == NOT_LOCKED_IN and not found["frames"]:
            raise ZygoteDied  # no verdict: start over
        self.seen.append(found)
        if len(self.seen) == len(self.job["checks"]) or not _goes_on(found):
            return True
        self._next()
        return False

    def close(self) -> None:
        if self.watch is not None:
            self.watch.close()
            self.watch = None


def _goes_on(seen: dict[str, Any]) -> bool:
    """Whether a later check of the code can matter: it compiles, and did not spend its time on loading."""
    frames = seen["frames"]
    return bool(frames) and frames[0] == b"c" and not (seen["cause"] == "timeout" and len(frames) == 1)


class Pool:
    """`workers` zygotes of the strongest layer that works; started at the first use.

    levels: the layers to try, in order; level: the one that works. Raises UserError at start where none does.
    """

    def __init__(self, workers: int, levels: tuple[str, ...] = STRONG):
        self.workers, self.levels = workers, levels
        self._idle: list[Zygote] = []
        self._level: str | None = None

    @property
    def level(self) -> str:
        if self._level is None:
            self._level, zygote = choose_level(self.levels)
            print(f"sandbox: {self._level}", file=sys.stderr)
            self._idle.append(zygote)
        return self._level

    def run(self, jobs: Iterable[tuple[Any, dict] | None]) -> Iterator[tuple[Any, list[dict[str, Any]]]]:
        """Yield (key, observations) for each (key, job), as they come; `jobs` is read as workers get free.

        A check that only sleeps keeps no worker: others are handed out meanwhile.
        None in `jobs` means: nothing more before an answer is out. A zygote that died is replaced and its job
        repeated. What kills one zygote after the other, where a good job does not, is seen as a crash; where a good
        job fails, too, RuntimeError is raised.
        """
        source = iter(jobs)
        busy: dict[int, Run] = {}
        poll = select.poll()

        def hand_out(key: Any, job: dict[str, Any]) -> list[dict[str, Any]] | None:
            """Start the job; where no zygote survives it return what is seen of that."""
            attempt = given_up.pop(key, 0)
            while attempt < ATTEMPTS:
                attempt += 1
                zygote = self._idle.pop() if self._idle else Zygote(self.level)
                try:
                    run = Run(zygote, key, job, attempt)
                except ZygoteDied:
                    zygote.close()
                    continue
                busy[zygote.socket.fileno()] = run
                poll.register(zygote.socket.fileno(), select.POLLIN)
                return None
            self._prove_well()
            return [{"frames": [], "cause": "crash", "status": -9, "cpu": 0.0, "idle": 0.0, "reason": None}]

        given_up: dict[Any, int] = {}

        def fill() -> Iterator[tuple[Any, list[dict[str, Any]]]]:
            while len(busy) < MORE * self.workers:
                if sum(not run.watch.resting for run in busy.values()) >= self.workers:
                    return
                following = next(source, None)
                if following is None:
                    return
                lost = hand_out(*following)
                if lost is not None:
                    yield following[0], lost

        try:
            yield from fill()
            while busy:
                pause = min(run.watch.pause for run in busy.values())
                ready = poll.poll(pause * 1000)
                now = time.monotonic()
                for run in busy.values():
                    if now - run.watch.looked >= run.watch.pause:
                        run.look()
                for number, _ in ready:
                    run = busy[number]
                    try:
                        if not run.heard():
                            continue
                    except ZygoteDied:
                        run.close()
                        del busy[number]
                        poll.unregister(number)
                        run.zygote.close()
                        given_up[run.key] = run.attempt
                        lost = hand_out(run.key, run.job)
                        if lost is not None:
                            yield run.key, lost
                        continue
                    del busy[number]
                    poll.unregister(number)
                    self._idle.append(run.zygote)
                    yield from fill()
                    yield run.key, run.seen
                yield from fill()
        finally:
            for run in busy.values():
                run.close()
                run.zygote.close()
            while len(self._idle) > self.workers:
                self._idle.pop().close()

    def _prove_well(self) -> None:
        """Raise RuntimeError unless a new zygote gets known jobs right: then a job that kills them is at fault."""
        try:
            with contextlib.closing(Zygote(self.level)) as zygote:
                failed = probe(zygote, self.level)
        except OSError as error:
            failed = str(error)
        if failed is not None:
            raise RuntimeError(f"the sandbox died {ATTEMPTS} times over one job: {failed}")

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()
