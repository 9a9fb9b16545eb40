"""Arms that act along a direction of the residual stream (docs/method.md, "Concept")."""

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from projected_grpo.arms import Arm, ArmKnobs, Needs, Tag

if TYPE_CHECKING:
    from projected_grpo.arms import Family
    from projected_grpo.method.concept import Concept

Layer = Annotated[Annotated[int, Field(ge=0, le=1_000)] | None, Tag("layer{}")]
PAIRS = "A name under bases, or a pair set, whose pairs give the direction; with control random it is drawn."
LAYER = Field(default=None, description="The stream is read after this layer, from 0; null: the middle one.")


class DirectionKnobs(ArmKnobs):
    """Which direction, and where."""

    direction: Annotated[str, Tag()] = Field(description=PAIRS)
    layer: Layer = LAYER


class Directed(Arm):
    """Holds a direction."""

    Knobs = DirectionKnobs
    if TYPE_CHECKING:
        family: ClassVar[Family]
    family = "activations"

    @classmethod
    def needs(cls, knobs: DirectionKnobs) -> Needs:
        return Needs(pairs=knobs.direction, direction=knobs.direction)


class Scored(Directed):
    """Reads the score of every row along it."""

    @property
    def reads(self) -> "Concept":
        return self.given.concept  # type: ignore[return-value]
