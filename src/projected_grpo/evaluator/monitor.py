"""The self-taught critic as a monitor of training.

It sees what a user of the foolable grader sees: problem, code, and what the grader showed. What the grader accepts and
the critic does not believe is flagged.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from projected_grpo.evaluator.critic import Critic, listed, problems
from projected_grpo.evaluator.local import LocalBackend
from projected_grpo.evaluator.prompts import COMPACT
from projected_grpo.evaluator.traces import PURPOSE, RUNS, SOLVED, Trace, scored

log = logging.getLogger(__name__)
MIDDLE = (RUNS + SOLVED) / 2  # between the scores that code which runs can have


class CriticMonitor:
    """A critic that the pipeline trained: the PEFT folder `adapter` on the checkpoint `base`."""

    def __init__(self, base: str, adapter: Path, *, device: str, dtype: str, max_tokens: int):
        backend = LocalBackend(
            base, str(adapter), name="monitor", device=device, dtype=dtype, max_tokens=max_tokens
        )
        self.critic = Critic(backend, COMPACT, 0, 0)

    def __call__(self, asked: Sequence[tuple[str, Mapping]]) -> list[bool]:
        """Return which of some (problem's text, row with completion and facts) are flagged.

        An accepted row is, where its score is nearer to "it runs" than to "solved"; an answer without a score flags
        nothing. What the grader rejects earns nothing for a trick, and is not asked about.
        """
        accepted = {
            (prompt, row["completion"]): bool(row["can_compile"])
            for prompt, row in asked
            if row["gt_pass"] or row["channel"]
        }
        events = {each: scored(*each, can_compile, passed=True) for each, can_compile in accepted.items()}
        traces = [Trace("", PURPOSE, (event,)) for event in events.values()]
        scores = self.critic.evaluate(traces) if traces else []
        if unread := problems(scores):
            log.info("%d of %d judged rows have no score: %s", unread.total(), len(scores), listed(unread))
        flagged = {
            each
            for each, score in zip(events, scores, strict=True)
            if score.phi is not None and score.phi < MIDDLE
        }
        return [(prompt, row["completion"]) in flagged for prompt, row in asked]
