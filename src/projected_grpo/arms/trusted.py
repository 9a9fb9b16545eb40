"""Only what a clean run would have done: the gradient is projected onto the top axes of that run's updates.

arXiv:2605.25189. The clean run is short, on problems of its own that name no lever (`stages/clean_run.py`).
"""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from projected_grpo.arms import Arm, ArmKnobs, Given, Needs, Tag
from projected_grpo.arms.shared.along_basis import Axes, Space

if TYPE_CHECKING:
    from projected_grpo.method.adapter import Parameters
    from projected_grpo.method.gradients import Gradient


class TrustedKnobs(ArmKnobs):
    """Which axes, and what is projected onto them."""

    k: Axes = Field(default=None, description="Axes used; null: as many as of a basis.")
    control: Annotated[Literal["none", "random"], Tag()] = Field(
        default="none", description="random: as many random axes in place of the clean run's."
    )
    space: Space = Field(
        default="gradient", description="What is projected: the gradient, or what AdamW is about to apply."
    )


class Trusted(Arm):
    """W `[k, r]` per module: g' = (W g) W; a module that the clean run never moved stays where it is."""

    Knobs = TrustedKnobs
    family = "gradient"

    def __init__(self, knobs: Any, given: Given):
        super().__init__(knobs, given)
        self._trusted = given.basis.V  # type: ignore[union-attr]
        self._share: float | None = None
        if knobs.control == "random":
            from projected_grpo.method.basis import TRUSTED, basis_rng, random_axes

            rng = basis_rng(given.seed, TRUSTED)
            self._trusted = {name: random_axes(*V.shape, rng).to(V) for name, V in self._trusted.items()}  # type: ignore[call-arg]

    @classmethod
    def needs(cls, knobs: TrustedKnobs) -> Needs:
        return Needs(clean_run=True)

    def onto(self, vectors: "Parameters") -> "Parameters":
        """Return each module's part in the span of its axes."""
        projected = {name: vector.new_zeros(vector.shape) for name, vector in vectors.items()}
        return projected | {name: (W @ vectors[name]) @ W for name, W in self._trusted.items()}

    def split_gradient(self, gradient: "Gradient") -> "tuple[Parameters, Parameters]":
        from projected_grpo.method.optimizer import total_norm

        whole, along = gradient.total, self.onto(gradient.total)
        norm = total_norm(whole)
        self._share = total_norm(along) / norm if norm else None
        return (along if self.knobs.space == "gradient" else whole), {}

    def split_update(self, direction: "Parameters") -> "tuple[Parameters, Parameters]":
        return (self.onto(direction) if self.knobs.space == "update" else direction), {}

    def columns(self) -> dict[str, float | None]:
        """Return the share of the gradient's length that lies along the axes, null where there is no gradient."""
        return {"trusted_share": self._share}
