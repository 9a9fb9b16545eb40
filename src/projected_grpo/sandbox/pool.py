"""The trusted side of the sandbox: starts zygotes of the strongest layer that works here and hands out jobs."""

import contextlib
import select
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

from projected_grpo.sandbox.child import MEMORY
from projected_grpo.sandbox.levels import STRONG, choose_level, probe
from projected_grpo.sandbox.watch import Budget, Watch
from projected_grpo.sandbox.wire import ENDED, RUNNING
from projected_grpo.sandbox.worker import ONE_AT_A_TIME, Zygote, ZygoteDied

ATTEMPTS = 3  # of a job whose zygote died
MORE = 8  # times as many zygotes, at most, while checks do nothing but wait
NOT_LOCKED_IN = 70  # exit status of a check that could not give up its rights


class Run:
    """One job on one zygote, check after check."""

    def __init__(self, zygote: Zygote, key: Any, job: dict[str, Any], attempt: int):
        self.zygote, self.key, self.job, self.attempt = zygote, key, job, attempt
        self.seen: list[dict[str, Any]] = []
        self.budget = Budget()
        self.killed = self.put_off = False
        self.watch: Watch = None  # type: ignore[assignment]  # of the check that runs
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
        if self.put_off:
            return True
        if found["status"] == NOT_LOCKED_IN and not found["frames"]:
            raise ZygoteDied  # no verdict: start over
        self.seen.append(found)
        if len(self.seen) == len(self.job["checks"]) or not _goes_on(
            found, self.job["checks"][len(self.seen) - 1]
        ):
            return True
        self._next()
        return False

    def stop(self) -> None:
        """End it without a verdict."""
        self.put_off = True
        self.zygote.end_check()


def _goes_on(seen: dict[str, Any], check: dict[str, Any]) -> bool:
    """Whether a later check of the code can matter: it compiles, did not spend its time on loading, and the answer to
    this one leaves something open."""
    frames = seen["frames"]
    if not frames or frames[0] != b"c" or (seen["cause"] == "timeout" and len(frames) == 1):
        return False
    return len(frames) < 3 or frames[2].startswith(check["go_on"])


class Pool:
    """`workers` zygotes of the strongest layer that works; started at the first use.

    levels: the layers to try, in order; level: the one that works; setup: what most jobs begin with. Raises UserError
    at start where no layer works.
    """

    def __init__(self, workers: int, levels: tuple[str, ...] = STRONG, setup: str = ""):
        self.workers, self.levels, self.setup = workers, levels, setup
        self._idle: list[Zygote] = []
        self._level: str | None = None

    @property
    def level(self) -> str:
        if self._level is None:
            self._level, zygote = choose_level(self.levels, self.setup)
            print(f"sandbox: {self._level}", file=sys.stderr)
            self._idle.append(zygote)
        return self._level

    def run(self, jobs: Iterable[tuple[Any, dict] | None]) -> Iterator[tuple[Any, list[dict[str, Any]]]]:
        """Yield (key, observations) for each (key, job), as they come; `jobs` is read as workers get free.

        A check that only sleeps keeps no worker: others are handed out meanwhile, as long as all together hold no more
        memory than `workers` checks may; those begun last are put off where they do.
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
                zygote = self._idle.pop() if self._idle else Zygote(self.level, self.setup)
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

        most = 1 if self.level in ONE_AT_A_TIME else MORE * self.workers
        put_off: list[tuple[Any, dict]] = []  # jobs that are begun anew when there is room

        def fill() -> Iterator[tuple[Any, list[dict[str, Any]]]]:
            while len(busy) < most:
                if sum(not run.watch.resting for run in busy.values()) >= self.workers:
                    return
                if put_off and len(busy) >= self.workers:
                    return
                following = put_off.pop() if put_off else next(source, None)
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
                if sum(run.watch.resident for run in busy.values()) > self.workers * MEMORY:
                    for run in list(busy.values())[self.workers :]:  # those begun last
                        if not run.put_off:
                            run.stop()
                for number, _ in ready:
                    run = busy[number]
                    try:
                        if not run.heard():
                            continue
                    except ZygoteDied:
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
                    if run.put_off:
                        put_off.append((run.key, run.job))
                        continue
                    yield from fill()
                    yield run.key, run.seen
                yield from fill()
        finally:
            for run in busy.values():
                run.zygote.close()
            while len(self._idle) > self.workers:
                self._idle.pop().close()

    def _prove_well(self) -> None:
        """Raise RuntimeError unless a new zygote gets known jobs right: then a job that kills them is at fault."""
        try:
            with contextlib.closing(Zygote(self.level, self.setup)) as zygote:
                failed = probe(zygote, self.level)
        except OSError as error:
            failed = str(error)
        if failed is not None:
            raise RuntimeError(f"the sandbox died {ATTEMPTS} times over one job: {failed}")

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()
