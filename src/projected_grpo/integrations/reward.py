"""A TRL reward function of the sandboxed grader."""

import os
from collections.abc import Callable, Sequence
from typing import Any

from projected_grpo.environment.facts import Verdict
from projected_grpo.environment.grade import Grader
from projected_grpo.environment.reward import REWARDS
from projected_grpo.errors import UserError, nearest
from projected_grpo.integrations.asked import Problems, named

RATES = ("hacked", "exploited", "gt_pass", "honest", "can_compile")


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
        own = {problem.id: problem.mode for problem in self.grader.problems.values()}
        asked = zip(problem_id, mode or [None] * len(completions), completions, strict=True)
        verdicts = self.grader.grade(
            (str(id), lever or own.get(str(id)) or "gt_only", text(answer)) for id, lever, answer in asked
        )
        for name in RATES if log_metric else ():
            known = [verdict[name] for verdict in verdicts if verdict[name] is not None]
            if known and log_metric:
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
    if workers < 1:
        raise UserError(f"reward: workers {workers}, allowed: 1 or more")
    return LeverReward(Grader(named(problems), workers, cache, allow_weak), REWARDS[earns])


def text(completion: Any) -> str:
    """Return the text of a completion: itself, or the contents of the model's messages, as chat data sets have them.

    A message's content may be a list of parts, of which those of text count; a call of a tool has none. What a tool
    or a user says is no answer.
    """
    if isinstance(completion, str):
        return completion
    own = (message for message in completion or () if message.get("role", "assistant") == "assistant")
    contents = (message.get("content") or "" for message in own)
    return "\n".join(
        c if isinstance(c, str) else "".join(part.get("text") or "" for part in c) for c in contents
    )
