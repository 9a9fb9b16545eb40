"""No gate: a quarantine inside span(V) trains beside delta_S with a head start, and is left out at deployment.

The idea of vGROUT's absorption (docs/method.md, "Routing"): what the quarantine has learned, delta_S need not learn.
"""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from projected_grpo.arms import Given, Tag
from projected_grpo.arms.shared.along_basis import AlongBasis, BasisKnobs
from projected_grpo.arms.shared.quarantine import Quarantined

if TYPE_CHECKING:
    from projected_grpo.method.adapter import Parameters
    from projected_grpo.method.gradients import Gradient


class AbsorbKnobs(BasisKnobs):
    """How far ahead."""

    head_start: Annotated[float, Tag("head{}")] = Field(
        default=2.0, gt=0, le=1_000, description="The quarantine's learning rate, in that of delta_S."
    )


class Absorb(Quarantined, AlongBasis):
    """The quarantine's parameters are z `[k]` per module, its vector z V; delta_S gets the whole gradient."""

    Knobs = AbsorbKnobs

    def __init__(self, knobs: AbsorbKnobs, given: Given):
        super().__init__(knobs, given)
        self._share: float | None = None
        self._restart()

    def _restart(self) -> None:
        """Begin with new axes: an optimizer of coordinates along them."""
        self.optimizer = self.given.optimizer({name: V.new_zeros(len(V)) for name, V in self.axes.items()})

    def renew(self, step: int) -> dict[str, float | None]:
        columns = super().renew(step)
        if columns["basis_overlap"] is not None:
            self._restart()
        return columns

    def split_gradient(self, gradient: "Gradient") -> "tuple[Parameters, Parameters]":
        """Nothing is taken out; what is parked is dL/dz = V g."""
        return gradient.total, {name: V @ gradient.total[name] for name, V in self.axes.items()}

    def split_update(self, direction: "Parameters") -> "tuple[Parameters, Parameters]":
        return direction, direction

    def park(self, gradient: "Parameters", direction: "Parameters", lr: float) -> None:
        from projected_grpo.method.optimizer import total_norm

        along = {name: dz @ self.axes[name] for name, dz in self.optimizer.direction(gradient).items()}
        own, beside = self.knobs.head_start * total_norm(along), total_norm(direction)
        self._share = own / (own + beside) if own + beside else None
        self.train_quarantine(along, self.knobs.head_start * lr)

    def columns(self) -> dict[str, float | None]:
        """Return also the quarantine's share of the update: |its step| / (|its step| + |that of delta_S|)."""
        return {**super().columns(), "quarantine_share": self._share}
