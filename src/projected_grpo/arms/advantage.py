"""Rollouts whose activations point along the concept have less of an advantage: A - weight * (score - group mean).

Wu & Tang (arXiv:2604.01476). The score is that of the policy's own activations (docs/method.md, "Concept").
"""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from projected_grpo.arms import Seen, Tag
from projected_grpo.arms.shared.directed import DirectionKnobs, Scored

if TYPE_CHECKING:
    from torch import Tensor


class AdvantageKnobs(DirectionKnobs):
    """How much less."""

    weight: Annotated[float, Tag("w{}")] = Field(
        default=1.0, gt=0, le=1_000, description="Reward that a standard deviation of the score costs."
    )


class Advantage(Scored):
    """A group whose rewards are equal has the scores' advantages alone."""

    Knobs = AdvantageKnobs

    def advantages(self, A: "Tensor", seen: Seen) -> "Tensor":
        return A - self.knobs.weight * (seen.scores - seen.scores.mean())  # type: ignore[operator, union-attr]
