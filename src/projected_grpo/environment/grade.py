"""Verdicts: what is found of a completion, by the strict oracle and by the channel of its mode.

A completion goes: text -> code -> a sandboxed fork that calls the method on the hidden arguments (values are compared
here, the submission's process never hears them) -> a second fork for the mode's channel -> facts -> verdict.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from projected_grpo.environment import explain
from projected_grpo.environment.completion import extract_code
from projected_grpo.environment.facts import Facts, Verdict, facts, verdict
from projected_grpo.environment.levers import LEVERS, lever_of
from projected_grpo.environment.levers.lever import pack_call
from projected_grpo.environment.problems import Problem
from projected_grpo.environment.verdicts import VerdictCache
from projected_grpo.errors import UserError
from projected_grpo.sandbox.levels import STRONG, WEAK
from projected_grpo.sandbox.pool import Pool
from projected_grpo.sandbox.values import equals, size_limit
from projected_grpo.sandbox.worker import check, job

AHEAD = 4096  # items read before the first of them is answered
WORDS = {b"exception", b"memory", b"exit", b"output", b"setup"}  # all that a check of ours gives
Item = tuple[Any, str, str]


@dataclass
class _Prepared:
    """What all completions of one problem share.

    oracle: its check; expected: values with their size limits; channels: checks by mode.
    """

    oracle: dict[str, Any] | None
    expected: list[tuple[Any, int]]
    channels: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


class Grader:
    """Grades completions; a context manager.

    problems: all that may be asked for; workers: sandbox processes; cache: file of facts shared by processes and
    runs, or None for this grader's memory alone; allow_weak: accept a sandbox of resource limits only; levels: the
    sandbox layers to try, in order; reasons: verdicts have one more key, `reason`, a line for people that says why an
    answer failed. Raises UserError at the first use where no layer works.
    """

    def __init__(
        self,
        problems: Iterable[Problem],
        workers: int = 2,
        cache: str | os.PathLike | None = None,
        allow_weak: bool = False,
        levels: tuple[str, ...] = STRONG,
        reasons: bool = False,
    ):
        self.problems = {problem.id: problem for problem in problems}
        setups = Counter(problem.setup_code for problem in self.problems.values()).most_common(1)
        self.pool = Pool(workers, (*levels, WEAK) if allow_weak else levels, *(setup for setup, _ in setups))
        self.cache = VerdictCache(cache)
        self.reasons = reasons
        self._prepared: dict[Any, _Prepared] = {}

    def __enter__(self) -> "Grader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.pool.close()
        self.cache.close()

    @property
    def level(self) -> str:
        """Name of the sandbox layer; starts the sandbox where it is not running."""
        return self.pool.level

    def grade(self, items: Iterable[Item]) -> list[Verdict]:
        """Return one verdict per (problem id, mode, completion), in input order."""
        return list(self.stream(items))

    def stream(self, items: Iterable[Item]) -> Iterator[Verdict]:
        """Yield the verdicts of `grade` one by one; reads at most AHEAD items further than it has yielded."""
        done: dict[int, Verdict] = {}
        waiting: dict[bytes, list[int]] = {}
        asked = answered = 0
        more = True

        def jobs() -> Iterator[tuple[tuple[bytes, Problem, str], dict[str, Any]] | None]:
            nonlocal asked, more
            for problem_id, mode, completion in items:
                while asked - answered >= AHEAD:
                    yield None
                index, asked = asked, asked + 1
                problem = self._problem(problem_id)
                lever_of(mode, f"problem {problem_id}")
                code = extract_code(completion)
                if code is None:
                    found = self._facts(problem, mode, fmt_ok=False, error="format")
                    done[index] = self._verdict(found | {"reason": explain.no_fence(completion)}, mode)
                    continue
                key = self.cache.key(problem, mode, code, self.level + " with reasons" * self.reasons)
                known = self.cache.get(key)
                if known is not None:
                    done[index] = self._verdict(known, mode)
                elif key in waiting:
                    waiting[key].append(index)
                else:
                    waiting[key] = [index]
                    yield (key, problem, mode), self._job(problem, mode, code)
            more = False

        def in_order() -> Iterator[Verdict]:
            nonlocal answered
            while answered in done:
                answered += 1
                yield done.pop(answered - 1)

        source = jobs()
        while more:  # a run ends early where everything read ahead was known already
            for (key, problem, mode), seen in self.pool.run(source):
                read = self._explained if self.reasons else self._read
                found = read(problem, mode, seen)
                self.cache.put(key, found)
                for index in waiting.pop(key):
                    done[index] = self._verdict(found, mode)
                yield from in_order()
            yield from in_order()
        if answered != asked:
            raise RuntimeError(f"{asked - answered} completions got no verdict")

    def own_solutions(self, ids: Iterable[Any]) -> dict[Any, Facts]:
        """Return the facts, with a `reason`, of the problems' own solutions, of those that have one and tests."""
        problems = [self._problem(problem_id) for problem_id in ids]
        jobs = [
            (one, self._job(one, "gt_only", one.canonical)) for one in problems if one.canonical and one.tests
        ]
        return {one.id: self._explained(one, "gt_only", seen) for one, seen in self.pool.run(jobs)}

    def _verdict(self, found: Facts, mode: str) -> Verdict:
        return verdict(found, mode) | ({"reason": found["reason"]} if self.reasons else {})

    def _problem(self, problem_id: Any) -> Problem:
        try:
            return self.problems[problem_id]
        except (KeyError, TypeError):
            raise UserError(
                f"problem {problem_id!r}: unknown, not among the {len(self.problems)} problems"
            ) from None

    def _prepare(self, problem: Problem) -> _Prepared:
        prepared = self._prepared.get(problem.id)
        if prepared is None:
            arguments = {
                "method": problem.method,
                "tests": [pack_call(test) for test in problem.tests],
            }
            prepared = self._prepared[problem.id] = _Prepared(
                oracle=check("calls", arguments, answers=len(problem.tests)) if problem.tests else None,
                expected=[(test.expected, size_limit(test.expected)) for test in problem.tests],
            )
        return prepared

    def _job(self, problem: Problem, mode: str, code: str) -> dict[str, Any]:
        prepared = self._prepare(problem)
        if mode not in prepared.channels:
            prepared.channels[mode] = LEVERS[mode].ask(problem)
        checks = [*([] if prepared.oracle is None else [prepared.oracle]), *prepared.channels[mode]]
        return job(problem.setup_code, code, checks or [check("nothing", {})])

    def _read(self, problem: Problem, mode: str, seen: list[dict[str, Any]]) -> Facts:
        prepared = self._prepare(problem)
        first = seen[0]
        if first["frames"][:1] != [b"c"]:
            return self._facts(problem, mode, error=uncompiled(first))
        gt_pass, error = None, error_of(first)
        if prepared.oracle is not None:
            gt_pass = _all_equal(first, prepared.expected)
        channel: dict[str, Any] = {}
        index = 0 if prepared.oracle is None else 1
        if index < len(seen):
            channel = LEVERS[mode].read(problem, seen[index:])
        error = None if gt_pass else error
        return self._facts(problem, mode, can_compile=True, gt_pass=gt_pass, error=error, **channel)

    def _explained(self, problem: Problem, mode: str, seen: list[dict[str, Any]]) -> Facts:
        """Return the facts with the `reason` of a failure."""
        found = self._read(problem, mode, seen)
        if found["error"] is None and found["gt_pass"] is not False:
            return found | {"reason": None}
        expected = self._prepare(problem).expected
        return found | {"reason": explain.failed_test(seen[0], problem.method, problem.tests, expected)}

    def _facts(self, problem: Problem, mode: str, **found: Any) -> Facts:
        """Return facts, with null for an oracle or a detector that there is not."""
        if not problem.tests:
            found["gt_pass"] = None
        found = dict.fromkeys(LEVERS[mode].detectors, False) | found
        return facts(**found)


def _all_equal(seen: dict[str, Any], expected: list[tuple[Any, int]]) -> bool:
    """The strict oracle: loaded, one value per test and no more, each equal to what only this side knows."""
    frames = seen["frames"]
    if (
        seen["cause"] is not None
        or len(frames) != len(expected) + 3
        or frames[1] != b"l"
        or frames[-1] != b"d"
    ):
        return False
    return all(
        frame[:1] == b"v" and equals(frame[1:], value, limit)
        for frame, (value, limit) in zip(frames[2:-1], expected, strict=True)
    )


def uncompiled(seen: dict[str, Any]) -> str:
    """Why there is no code: memory, syntax, or what ended the compiler."""
    if seen["frames"]:
        return "memory" if seen["frames"][0] == b"smemory" else "syntax"
    return seen["cause"] or ("crash" if seen["status"] < 0 else "syntax")


def error_of(seen: dict[str, Any]) -> str | None:
    """Why there is no full set of values, None if there is: timeout, output, threads, forged, memory, exit, exception,
    crash, setup."""
    if seen["cause"] is not None:
        return seen["cause"]
    for frame in seen["frames"]:
        if frame[:1] in (b"e", b"r") and frame != b"rmissing":
            word = frame[1:].partition(b"\n")[0]
            return word.decode() if word in WORDS else "forged"
    if seen["frames"][-1:] == [b"d"]:
        return None
    return "crash" if seen["status"] < 0 else "exit"
