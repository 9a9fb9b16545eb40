"""Send the hack-ward part to a quarantine that is left out at deployment (docs/method.md, "Routing").

`space: gradient`, as published: the quarantine is a second adapter with an optimizer of its own, trained by what
`erase` would drop. `space: update`: what one optimizer applies is split; training is vanilla's, number for number.
"""

from typing import TYPE_CHECKING, Any

from pydantic import ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from projected_grpo.arms.shared.along_basis import Projection, ProjectionKnobs
from projected_grpo.arms.shared.quarantine import Quarantined
from projected_grpo.errors import SettingError

if TYPE_CHECKING:
    from projected_grpo.method.adapter import Parameters


class RouteKnobs(ProjectionKnobs):
    """As of a projection, but for what would make one direction's parts not add up to it."""

    @field_validator("space")
    @classmethod
    def _parts_add_up(cls, space: str, info: ValidationInfo) -> str:
        if space == "update" and info.data.get("preserve_magnitude"):
            raise PydanticCustomError(
                "value_error", "gradient with preserve_magnitude: the parts must add up"
            )
        return space


class Route(Quarantined, Projection):
    """In gradient space theta is what is deployed; in update space it is both, so that it equals vanilla's exactly."""

    Knobs = RouteKnobs

    @classmethod
    def training(cls, knobs: RouteKnobs, training: Any) -> Any:
        if knobs.space == "update" and training.weight_decay:
            raise SettingError("space", "'update' of arm 'route', allowed with weight decay: gradient")
        return training

    @property
    def _holds_both(self) -> bool:
        return self.knobs.space == "update"

    def sampled_theta(self, theta: "Parameters") -> "Parameters":
        return theta if self._holds_both else super().sampled_theta(theta)

    def moved(self, direction: "Parameters", applied: "Parameters") -> "Parameters":
        return direction if self._holds_both else applied

    def park(self, gradient: "Parameters", direction: "Parameters", lr: float) -> None:
        if self._holds_both:
            self.train_quarantine(direction, lr)
        else:
            super().park(gradient, direction, lr)

    def deployed(self, theta: "Parameters") -> "Parameters":
        if not self._holds_both:
            return theta
        return {name: value - self.quarantine[name] for name, value in theta.items()}
