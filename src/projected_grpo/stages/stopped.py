"""Early stopping: what a finished run would have deployed, had it ended before. Nothing is trained for it."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from projected_grpo.cells.hyper import Training
from projected_grpo.environment.grade import Grader
from projected_grpo.method.optimizer import learning_rate
from projected_grpo.method.policy import Policy
from projected_grpo.stages.kept import weights
from projected_grpo.training.panels import COLUMNS as DEPLOYED
from projected_grpo.training.panels import Panels, deployed_rows

EVERY = 2  # steps between two ends
COLUMNS = ("after", "dose", *DEPLOYED)


def dose(step: int, training: Training) -> float:
    """Return how much of a run's training is done after a step: the share of its summed learning rates.

    In the same number `less` stands at its scale.
    """
    rates = [
        learning_rate(each, training.steps, 1.0, training.warmup) for each in range(1, training.steps + 1)
    ]
    return sum(rates[:step]) / sum(rates)


def stopped_rows(
    policy: Policy, deltas: Path, training: Training, panels: Panels, grader: Grader, samples: int, seed: int
) -> Iterator[Mapping]:
    """Yield a row of `COLUMNS` per rollout after steps 2, 4, ... before the last; deltas: the run's, of one adapter."""
    for step in range(EVERY, training.steps, EVERY):
        model = policy.merged(weights(deltas, policy, step + 1))
        rows = deployed_rows(model, policy.tokenizer, panels, grader, samples, training.max_new, seed)
        yield from ({"after": step, "dose": dose(step, training)} | row for row in rows)
