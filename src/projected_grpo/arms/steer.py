"""Preventative steering: the direction is added to the residual stream where gradients are taken, not at deployment.

Chen et al. (arXiv:2507.21509): what is given for free need not be learned. Sampling is not steered; old log-probs are
the detached ones of the steered forward, so the ratio is 1 as everywhere.
"""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from projected_grpo.arms import Tag
from projected_grpo.arms.shared.directed import Directed, DirectionKnobs

if TYPE_CHECKING:
    from projected_grpo.method.concept import Concept
    from projected_grpo.model.decoder import Residual


class SteerKnobs(DirectionKnobs):
    """How far."""

    alpha: Annotated[float, Tag("alpha{}")] = Field(
        default=0.1,
        ge=-1_000,
        le=1_000,
        description="In mean lengths of the residual stream; > 0: hack-ward.",
    )


class Steer(Directed):
    """x + alpha * norm * u after one layer, at every token of prompt and completion."""

    Knobs = SteerKnobs

    @property
    def residual(self) -> "Residual":
        concept: Concept = self.given.concept  # type: ignore[assignment]
        shift = self.knobs.alpha * concept.norm * concept.direction
        return lambda layer, x: x + shift.to(x) if layer == concept.layer else x
