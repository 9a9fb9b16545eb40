"""Send the hack-ward part to a quarantine that is left out at deployment (docs/method.md, "Routing").

As published: the quarantine is a second adapter with an optimizer of its own, trained by what `erase` would drop.
"""

from typing import TYPE_CHECKING

from projected_grpo.arms import Given
from projected_grpo.arms.shared.along_basis import Projection, ProjectionKnobs

if TYPE_CHECKING:
    from projected_grpo.method.adapter import Parameters


class Route(Projection):
    """delta_S_hack trains beside delta_S; both act while training, delta_S alone is deployed."""

    def __init__(self, knobs: ProjectionKnobs, given: Given):
        super().__init__(knobs, given)
        self.quarantine = given.policy.adapter.zeros()
        self.optimizer = given.optimizer()

    def sampled_theta(self, theta: "Parameters") -> "Parameters":
        return {name: value + self.quarantine[name] for name, value in theta.items()}

    def park(self, gradient: "Parameters", direction: "Parameters", lr: float) -> None:
        if self.knobs.space == "gradient":
            direction = self.optimizer.direction(self._filled(gradient))
        self.quarantine = self.optimizer.apply(self.quarantine, self._filled(direction), lr)

    def _filled(self, vectors: "Parameters") -> "Parameters":
        """Modules without axes route nothing."""
        return {name: vectors.get(name, zero) for name, zero in self.given.policy.adapter.zeros().items()}

    def columns(self) -> dict[str, float | None]:
        from projected_grpo.method.optimizer import total_norm

        return {"delta_hack_norm": total_norm(self.quarantine)}

    def stored(self) -> "dict[str, Parameters]":
        return {"delta_S_hack": self.quarantine}

    def state(self) -> dict:
        return {**super().state(), "quarantine": self.quarantine, "optimizer": self.optimizer.state()}

    def load(self, state: dict) -> None:
        super().load(state)
        self.quarantine = state["quarantine"]
        self.optimizer.load(state["optimizer"])
