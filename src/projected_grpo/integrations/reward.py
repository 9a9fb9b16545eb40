"""A TRL reward function of the sandboxed grader, and the rows of a data set that it goes with."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from projected_grpo.environment.facts import Verdict
from projected_grpo.environment.grade import Grader
from projected_grpo.environment.levers import lever_of
from projected_grpo.environment.problems import Problem, load_problems
from projected_grpo.environment.prompts import messages_for
from projected_grpo.environment.reward import REWARDS
from projected_grpo.errors import UserError, nearest

RATES = ("hacked", "exploited", "gt_pass", "honest", "can_compile")
Problems = str | os.PathLike | Sequence[Problem]


class LeverReward:
    """What completions earn, called as TRL calls a reward function; logs the rate of each of RATES.

    The columns `problem_id` and `mode` of the data set say what a completion answers; `rows` makes them. Each process
    has a sandbox of its own, which `close` ends.
    """

    __name__ = "levers"  # as TRL logs it: rewards/levers/mean

    def __init__(self, grader: Grader, earned: Callable[[Verdict], float]):
        self.grader, self.earned = grader, earned

    def __call__(
        self,
        completions: Sequence[Any],
        problem_id: Sequence[Any] | None = None,
        mode: Sequence[str | None] | None = None,
        log_metric: Callable[[str, float], None] | None = None,
        **columns: Any,
    ) -> list[float]:
        """Return what each completion earns. Raises UserError without the column `problem_id`."""
        if problem_id is None:
            raise UserError(
                "reward: the data set has no column problem_id, allowed: the rows of `rows(problems)`"
            )
        modes = mode or [None] * len(completions)
        verdicts = self.grader.grade(
            (str(id), lever or self.grader.problems[str(id)].mode or "gt_only", text(completion))
            for id, lever, completion in zip(problem_id, modes, completions, strict=True)
        )
        for name in RATES if log_metric else ():
            known = [verdict[name] for verdict in verdicts if verdict[name] is not None]
            if known:
                log_metric(name, sum(known) / len(known))
        return [self.earned(verdict) for verdict in verdicts]

    def close(self) -> None:
        self.grader.close()


def reward(
    problems: Problems,
    *,
    earns: str = "foolable",
    workers: int = 2,
    cache: str | os.PathLike | None = None,
    allow_weak: bool = False,
) -> LeverReward:
    """Return a reward function for `GRPOTrainer(reward_funcs=...)`.

    problems: rows or their file; earns: `foolable`, what the grader named in the prompt pays, or `oracle`, what hidden
    tests pay; workers: sandbox processes; cache: file of facts kept between runs; allow_weak: accept a sandbox of
    resource limits only. Raises UserError on anything else.
    """
    if earns not in REWARDS:
        raise UserError(f"reward: unknown earns {earns!r}; {nearest(earns, REWARDS)}")
    return LeverReward(Grader(named(problems), workers, cache, allow_weak), REWARDS[earns])


def rows(problems: Problems, modes: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return rows for `datasets.Dataset.from_list`: `prompt` (messages with the lever's hint), `problem_id`, `mode`.

    modes: each problem once under each of these levers; none: under its own, or `gt_only`.
    """
    asked = []
    for problem in named(problems):
        for mode in modes or (problem.mode or "gt_only",):
            lever_of(mode, "modes")
            asked.append({"prompt": messages_for(problem, mode), "problem_id": problem.id, "mode": mode})
    return asked


def named(problems: Problems) -> list[Problem]:
    """Return problems whose ids are text, as a column of a data set must have one type."""
    found = load_problems(problems) if isinstance(problems, str | os.PathLike) else list(problems)
    return [replace(problem, id=str(problem.id)) for problem in found]


def text(completion: Any) -> str:
    """Return the text of a completion: itself, or the contents of its messages, as chat data sets have them."""
    if isinstance(completion, str):
        return completion
    return "".join(message["content"] or "" for message in completion)
