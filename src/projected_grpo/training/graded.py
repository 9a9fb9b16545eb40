"""A graded rollout: what training holds of one completion, live or from the teacher pool."""

from dataclasses import dataclass

from projected_grpo.model.sampler import Rollout


@dataclass(frozen=True)
class Graded:
    """One completion: tokens, its sampling log-probs (`[tokens]`), and its row: facts of the verdict, text, whatever

    the pool stored with it.
    """

    tokens: list[int]
    logprobs: list[float] | None
    row: dict

    @property
    def rollout(self) -> Rollout:
        """The completion without anything that was found about it."""
        return Rollout(self.tokens, self.logprobs)  # type: ignore[arg-type]
