"""Arms that act along a hack basis V, frozen or extracted anew every N steps (docs/method.md, "Basis")."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from projected_grpo.arms import Arm, ArmKnobs, Given, Needs, Tag

if TYPE_CHECKING:
    from torch import Tensor

    from projected_grpo.arms import Family
    from projected_grpo.method.adapter import Parameters
    from projected_grpo.method.gradients import Gradient


Axes = Annotated[Annotated[int, Field(ge=1, le=10_000)] | None, Tag("k{}")]
Space = Annotated[Literal["gradient", "update"], Tag()]


class BasisKnobs(ArmKnobs):
    """Which axes, and how fresh."""

    basis: Annotated[str, Tag()] = Field(description="A name under bases in the config, or a pair set.")
    k: Axes = Field(default=None, description="Axes used; null: the basis's own.")
    refresh: Annotated[int, Tag("refresh{}")] = Field(
        default=0,
        ge=0,
        le=100_000,
        description="Extracted anew every N steps (random axes: drawn anew); 0: frozen.",
    )


class ProjectionKnobs(BasisKnobs):
    """How the part along V is taken out."""

    gate: Annotated[Literal["one_sided", "no_gate", "reverse"], Tag()] = Field(
        default="one_sided", description="Which part is taken out: the hack-ward one, both, or twice both."
    )
    sign: Annotated[Literal[1, -1], Tag("sign{}")] = Field(
        default=1,
        description="-1: every axis of V flipped, so that its gate lets the hack-ward part through.",
    )
    overshoot: Annotated[float, Tag("over{}")] = Field(
        default=1.0, gt=0, le=1_000, description="Share of the part that is taken out."
    )
    preserve_magnitude: Annotated[bool, Tag("keepnorm")] = Field(
        default=False, description="The kept part gets the length of the whole."
    )
    space: Space = Field(
        default="gradient", description="What is projected: the gradient, or what AdamW is about to apply."
    )

    @field_validator("sign")
    @classmethod
    def _only_where_it_matters(cls, sign: int, info: ValidationInfo) -> int:
        gate = info.data.get("gate", "one_sided")
        if sign != 1 and gate != "one_sided":
            raise PydanticCustomError("value_error", f"1 with gate {gate}, which does not see the sign")
        return sign


class AlongBasis(Arm):
    """Holds V, and renews it where a row says so."""

    Knobs = BasisKnobs
    if TYPE_CHECKING:
        family: ClassVar[Family]
    family = "gradient"

    def __init__(self, knobs: BasisKnobs, given: Given):
        super().__init__(knobs, given)
        self._axes = self._turned(given.basis.V)  # type: ignore[union-attr]

    @classmethod
    def needs(cls, knobs: BasisKnobs) -> Needs:
        return Needs(basis=knobs.basis, pairs=knobs.basis if knobs.refresh else None)

    def _turned(self, V: "dict[str, Tensor]") -> "dict[str, Tensor]":
        """Return the axes of a basis as the arm uses them."""
        return V

    @property
    def axes(self) -> "dict[str, Tensor]":
        return self._axes

    def renew(self, step: int) -> dict[str, float | None]:
        """Extract V anew at the deployed weights at steps N, 2N, ...; return its overlap with the one before and the

        first one.
        """
        from projected_grpo.method.basis import overlap

        if not self.knobs.refresh or step % self.knobs.refresh:
            return {"basis_overlap": None, "basis_overlap_first": None}
        policy = self.given.policy
        deployed = replace(policy, theta=self.deployed(policy.theta))
        before, self._axes = self._axes, self._turned(self.given.extract(deployed, step).V)  # type: ignore[misc]
        first = self._turned(self.given.basis.V)  # type: ignore[union-attr]
        return {
            "basis_overlap": overlap(before, self._axes),
            "basis_overlap_first": overlap(first, self._axes),
        }

    def state(self) -> dict:
        return {**super().state(), "axes": self._axes}

    def load(self, state: dict) -> None:
        super().load(state)
        self._axes = state["axes"]


class Projection(AlongBasis):
    """Splits each module's vector into what is kept and the part along V (docs/method.md, "Projection")."""

    Knobs = ProjectionKnobs

    def _turned(self, V: "dict[str, Tensor]") -> "dict[str, Tensor]":
        return V if self.knobs.sign == 1 else {name: -axes for name, axes in V.items()}

    def split(self, vectors: "Parameters") -> "tuple[Parameters, Parameters]":
        """Return (kept, removed) by module."""
        from projected_grpo.method.projection import Intervention, split

        knobs = self.knobs
        return split(vectors, self._axes, Intervention(knobs.gate, knobs.overshoot, knobs.preserve_magnitude))

    def split_gradient(self, gradient: "Gradient") -> "tuple[Parameters, Parameters]":
        return self.split(gradient.total) if self.knobs.space == "gradient" else (gradient.total, {})

    def split_update(self, direction: "Parameters") -> "tuple[Parameters, Parameters]":
        return self.split(direction) if self.knobs.space == "update" else (direction, {})
