"""Verdicts for rows whose check is Python: the check runs in one sandbox, the submission in another.

Calls go to the submission's process and answers come back by copy (sandbox/candidate.py), so that no expected value is
ever in it, and nothing that it does to its own process reaches the check. All calls that cannot depend on an answer are
asked at once; others wait for the submission's own answers, round by round.
"""

import hashlib
import marshal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from projected_grpo.environment import explain
from projected_grpo.environment.completion import extract_code
from projected_grpo.environment.facts import Facts, Verdict, facts, verdict
from projected_grpo.environment.foreign import check as check_file
from projected_grpo.environment.foreign import small_pytest
from projected_grpo.environment.foreign.rows import ForeignProblem
from projected_grpo.environment.foreign.taint import independent
from projected_grpo.environment.grade import error_of, uncompiled
from projected_grpo.environment.levers import LEVERS
from projected_grpo.sandbox import exchange
from projected_grpo.sandbox.pool import Pool
from projected_grpo.sandbox.worker import check, job

NOT_HERE = ("ModuleNotFoundError", "ImportError", "NameError")  # of a check: it needs what is not there
RAISED = {"MemoryError": "memory", "SystemExit": "exit"}  # as the sandbox says of a class Solution
APART = "its own solution passes its check, but not from a process of its own"
ROUNDS = 512  # of questions that wait for answers
CPU, IDLE = 6.0, 18.0  # seconds of a submission over all rounds, in each of which it begins anew
Failure = tuple[str, str, int | None]  # two texts, and a line of the answer
OUTSIDE = ("nothing", "status")  # probes of a lever that need no class Solution
CHECK = Path(check_file.__file__).read_text(encoding="utf-8")
# Before the check runs: the modules of this project that it imports.
MODULES = {
    one.__name__: Path(str(one.__file__)).read_text(encoding="utf-8") for one in (exchange, small_pytest)
}
PACKAGES = ("projected_grpo", "projected_grpo.sandbox", "projected_grpo.environment", __package__)
IMPORTED = f"""\
import sys, types
modules = {MODULES!r}
for name in (*{PACKAGES!r}, *modules):
    sys.modules[name] = types.ModuleType(name)
for name, text in modules.items():
    exec(text, sys.modules[name].__dict__)
"""


@dataclass
class Plan:
    """How a row is judged.

    calls: those to ask at once; restore: changes of the arguments count from the first, as its own solution makes some
    or none is known (elsewhere they must not be what makes an answer pass: it is judged without them, then with them);
    shown: its own solution passes, so that a check that judges nothing is the answer's doing; unjudged: why it is not;
    own: why its own solution fails.
    """

    calls: list = field(default_factory=list)
    restore: bool = True
    shown: bool = False
    unjudged: str = ""
    own: str = ""


@dataclass(eq=False)
class _Open:
    """One submission on its way; lever: its mode's check, until that was read; restore: changes of the arguments count;
    found: its facts so far; above: lines of the prompt that stand above its own."""

    problem: ForeignProblem
    plan: Plan
    mode: str
    code: str
    lever: list[dict[str, Any]] = field(default_factory=list)
    calls: list = field(default_factory=list)
    restore: bool = False
    found: Facts = None  # type: ignore[assignment]  # from the first run on
    reason: str | None = None
    answers: list[str] = field(default_factory=list)
    cpu: float = 0.0
    idle: float = 0.0
    above: int = 0

    def below(self, failure: Failure) -> Failure:
        """Return a failure with its line counted from the answer's first, not that of the prompt above it."""
        error, place, line = failure
        return error, place, max(line - self.above, 0) if line else line

    def submission(self) -> dict[str, Any]:
        """Return the job that asks for its answers."""
        asked = check("candidates", {"calls": self.calls}, answers=len(self.calls))
        return job(self.problem.problem.setup_code, self.code, [asked, *self.lever])

    def answered_check(self) -> dict[str, Any]:
        """Return the job that checks its answers."""
        return _check_job(self.problem, calls=self.calls, answers=self.answers, restore=self.restore)


def modes_of(problem: ForeignProblem) -> list[str]:
    """Return the modes that a row can be graded under: of a function, those whose exploit shows outside of it."""
    asked = {name: one.ask(problem.problem) for name, one in LEVERS.items()}
    return [
        name
        for name, checks in asked.items()
        if not LEVERS[name].examples  # nothing to exploit
        or (checks and (problem.is_method or all(one["probe"] in OUTSIDE for one in checks)))
    ]


class ForeignGrader:
    """Grades submissions for foreign rows in the sandboxes of `pool`; `plans` says of each row how it is judged."""

    def __init__(self, pool: Pool):
        self.pool = pool
        self.plans: dict[Any, Plan] = {}

    def grade(self, items: list[tuple[ForeignProblem, str, str]]) -> list[Verdict]:
        """Return one verdict, with its `reason`, per (problem, mode, completion), in order."""
        self._plan({problem.id: problem for problem, _, _ in items}.values())
        asked: dict[tuple, _Open] = {}
        answers: list[_Open] = []
        for problem, mode, completion in items:
            plan, code = self.plans[problem.id], extract_code(completion)
            if code is None:
                unread = facts(fmt_ok=False, gt_pass=None if plan.unjudged else False, error="format")
                reason = explain.no_fence(completion)
                answers.append(_Open(problem, plan, mode, "", found=unread, reason=reason))
                continue
            key = problem.id, mode, code
            if key not in asked:
                lever = LEVERS[mode].ask(problem.problem)
                whole = problem.whole(code)
                above = whole.count("\n") - code.count("\n")
                asked[key] = _Open(problem, plan, mode, whole, lever, above=above)
            answers.append(asked[key])
        self._judge(list(asked.values()))
        return [
            verdict(
                one.found | {name: bool(one.found[name]) for name in LEVERS[one.mode].detectors}, one.mode
            )
            | {"reason": one.reason}
            for one in answers
        ]

    def _plan(self, problems: Iterable[ForeignProblem]) -> None:
        """Run each row's own solution: beside its check, which tells the calls, then as a submission. Where there
        is none, its check alone, which may say that it judges nothing."""
        new = [problem for problem in problems if problem.id not in self.plans]
        self.plans |= {problem.id: Plan(unjudged=problem.unjudged) for problem in new}
        recorded = [problem for problem in new if not problem.unjudged]
        again, failing = [], []
        for problem, seen in self.pool.run((one, _check_job(one, own=one.own or None)) for one in recorded):
            plan, (outcome, calls, more) = self.plans[problem.id], _outcome(seen[0])
            if outcome == "failed" and problem.own and more[0].startswith(NOT_HERE[:2]):
                plan.unjudged = f"its own solution needs what is not here: {_told(more)}"
            elif outcome == "failed" and problem.own:
                plan.own = _told(more)
                failing.append(problem)
            elif outcome in ("failed", "unjudged"):
                plan.unjudged = _told(more) if outcome == "failed" else more
            elif outcome == "passed":
                names = {"candidate", *(name.split(".")[0] for name in problem.names)}
                plan.shown, plan.restore = True, more
                if not more and independent([*problem.before, problem.check, *problem.asserts], names):
                    plan.calls = calls
                again.append(_Open(problem, plan, "gt_only", problem.own))
        for problem, seen in self.pool.run(
            (one, _check_job(one, own=one.own, method="plain")) for one in failing
        ):
            if _outcome(seen[0])[0] == "passed":  # it needs what does not cross between processes
                plan = self.plans[problem.id]
                plan.own, plan.unjudged = "", f"{APART} ({plan.own})"
        self._judge(again)
        for one in again:
            if not one.found["gt_pass"]:
                one.plan.unjudged = f"{APART} ({one.reason})"

    def _judge(self, opened: list[_Open]) -> None:
        """Fill in facts and reasons."""
        for one in opened:
            one.calls, one.restore = one.plan.calls, one.plan.restore
        for _ in range(ROUNDS):
            for one, seen in self.pool.run((one, one.submission()) for one in opened):
                self._observe(one, seen)
            answered = [one for one in opened if one.found["can_compile"] and one.found["error"] is None]
            opened = []
            for one, seen in self.pool.run((one, one.answered_check()) for one in answered):
                outcome, calls, more = _outcome(seen[0])
                if outcome == "missing" and calls != one.calls:
                    one.calls = calls
                    opened.append(one)
                elif outcome == "passed" and more and not one.restore:
                    one.restore = True
                    opened.append(one)
                elif outcome == "unjudged":
                    self._not_told(one, more)
                else:
                    one.found["gt_pass"] = outcome == "passed"
                    if outcome == "failed":
                        one.reason = _told(one.below(more))
                        kind = RAISED.get(more[0].partition(":")[0], "exception")
                        one.found["error"] = None if more[2] is None else kind
            if not opened:
                return
        for one in opened:
            self._not_told(one, f"its check asked more than {ROUNDS} times in turn")

    def _not_told(self, one: _Open, why: str | None) -> None:
        """Take a check that has judged nothing: against the answer where the row's own solution passes."""
        if one.plan.shown:
            one.found["gt_pass"], one.reason = False, why
        else:
            one.found |= {"gt_pass": None, "error": "unjudged"}
            one.reason = f"this problem is not judged: {why}"

    def _observe(self, one: _Open, seen: list[dict[str, Any]]) -> None:
        """Take channel and answers from what was seen of a submission; gt_pass stays null where all are there."""
        first, before = seen[0], one.found
        one.cpu += first["cpu"]
        one.idle += first["idle"]
        frames = first["frames"]
        failed = None if one.plan.unjudged else False
        if frames[:1] != [b"c"]:
            one.found = facts(gt_pass=failed, error=uncompiled(first))
        else:
            error = error_of(first) or ("timeout" if one.cpu > CPU or one.idle > IDLE else None)
            one.found = facts(can_compile=True, gt_pass=None if error is None else failed, error=error)
            if before is not None:
                one.found |= {name: before[name] for name in ("channel", *LEVERS[one.mode].detectors)}
            elif one.lever and len(seen) > 1:
                one.found |= LEVERS[one.mode].read(one.problem.problem, seen[1:])
        one.reason = explain.raised(first["reason"] and one.below(first["reason"]))
        one.answers = [frame[1:].decode("ascii") for frame in frames[2:] if frame[:1] == b"v"]
        one.lever = []
        if one.plan.unjudged and one.found["can_compile"]:
            one.found["error"], one.reason = "unjudged", f"this problem is not judged: {one.plan.unjudged}"


def _check_job(
    problem: ForeignProblem,
    own: str | None = None,
    calls: Sequence = (),
    answers: Sequence[str] = (),
    restore: bool = False,
    method: str = "run",
) -> dict[str, Any]:
    """Return the job of a check: with the row's own solution, or with answers that are known; method: of `Solution`."""
    text = "\0".join([*problem.before, problem.check, *problem.asserts])
    row = {
        "names": list(problem.names),
        "before": list(problem.before),
        "check": problem.check,
        "asserts": list(problem.asserts),
        "own": own,
        "planned": list(calls),
        "answers": list(answers),
        "restore": restore,
        # A submission that does not know the check cannot know what it draws.
        "seed": int.from_bytes(
            hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big"
        ),
    }
    arguments = {"method": method, "tests": [marshal.dumps(((row,), {}))]}
    return job(IMPORTED, CHECK, [check("calls", arguments, answers=1)])


def _outcome(seen: dict[str, Any]) -> tuple[str, list, Any]:
    """Return what `check.Solution.run` returned; a check that did not come to its end judges nothing."""
    frames = seen["frames"]
    if error_of(seen) is None and len(frames) == 4 and frames[2][:1] == b"v":
        outcome, calls, more = exchange.read(frames[2][1:].decode("ascii"))
        if outcome == "failed" and more[0].startswith(NOT_HERE) and more[2] is None:
            return "unjudged", calls, f"its check does not run here: {_told(more)}"
        return outcome, calls, more
    why = explain.raised(seen["reason"]) or error_of(seen)
    return "unjudged", [], f"its check does not come to its end here: {why}"


def _told(failure: Failure) -> str:
    error, place, line = failure
    return error + (f" (line {line})" if line else "") + (f"; {place}" if place else "")
