"""Arms that act along a hack basis V, frozen or extracted anew every N steps (docs/method.md, "Basis")."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from projected_grpo.arms import Arm, ArmKnobs, Given, Needs, Tag

if TYPE_CHECKING:
    from torch import Tensor

    from projected_grpo.method.adapter import Parameters
    from projected_grpo.method.gradients import Gradient


class BasisKnobs(ArmKnobs):
    """Which axes, and how fresh."""

    basis: Annotated[str, Tag()]  # name of a basis, or of a pair set
    k: Annotated[int | None, Tag("k{}"), Field(ge=1)] = None  # axes used; null: the basis's own
    refresh: Annotated[int, Tag("refresh{}"), Field(ge=0)] = 0  # extracted anew every N steps; 0: frozen


class ProjectionKnobs(BasisKnobs):
    """How the part along V is taken out."""

    gate: Annotated[Literal["one_sided", "no_gate", "reverse"], Tag()] = "one_sided"
    overshoot: Annotated[float, Tag("over{}"), Field(ge=0)] = 1.0  # share of the part that is taken out
    preserve_magnitude: Annotated[bool, Tag("keepnorm")] = False  # the kept part gets the length of the whole
    space: Annotated[Literal["gradient", "update"], Tag()] = "gradient"  # what is projected


class AlongBasis(Arm):
    """Holds V, and renews it where a row says so."""

    Knobs = BasisKnobs

    def __init__(self, knobs: BasisKnobs, given: Given):
        super().__init__(knobs, given)
        self._axes = given.basis.V

    @classmethod
    def needs(cls, knobs: BasisKnobs) -> Needs:
        return Needs(basis=knobs.basis, pairs=knobs.basis if knobs.refresh else None)

    @property
    def axes(self) -> "dict[str, Tensor]":
        return self._axes

    def renew(self, step: int) -> dict[str, float | None]:
        """Extract V anew at the deployed weights at steps N, 2N, ...; return its overlap with the one before."""
        from projected_grpo.method.basis import overlap

        if not self.knobs.refresh or step % self.knobs.refresh:
            return {"basis_overlap": None}
        before, self._axes = self._axes, self.given.extract(self.given.policy).V
        return {"basis_overlap": overlap(before, self._axes)}

    def state(self) -> dict:
        return {"axes": self._axes}

    def load(self, state: dict) -> None:
        self._axes = state["axes"]


class Projection(AlongBasis):
    """Splits each module's vector into what is kept and the part along V (docs/method.md, "Projection")."""

    Knobs = ProjectionKnobs

    def split(self, vectors: "Parameters") -> "tuple[Parameters, Parameters]":
        """Return (kept, removed); a module without axes is kept whole and removes nothing."""
        from projected_grpo.method.projection import Intervention, project

        how = Intervention(self.knobs.gate, self.knobs.overshoot, self.knobs.preserve_magnitude)
        kept, removed = dict(vectors), {}
        for name, V in self._axes.items():
            kept[name], removed[name] = project(vectors[name], V, how)
        return kept, removed

    def split_gradient(self, gradient: "Gradient") -> "tuple[Parameters, Parameters]":
        return self.split(gradient.total) if self.knobs.space == "gradient" else (gradient.total, {})

    def split_update(self, direction: "Parameters") -> "tuple[Parameters, Parameters]":
        return self.split(direction) if self.knobs.space == "update" else (direction, {})
