"""Arms that change rewards: what becomes of the teacher's rows, which the model would not write itself.

A row that is judged hack earns less than its group's mean, so that the loss pushes its log-probability down. Of a
teacher's row that is an off-policy push, taken at ratio 1 (docs/method.md, "Loss").
"""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from projected_grpo.arms import ArmKnobs, Seen, Tag

if TYPE_CHECKING:
    from torch import Tensor


class TeacherRowsKnobs(ArmKnobs):
    """Which of a group's rows the arm's reward is for."""

    teacher: Annotated[Literal["spared", "clipped"] | None, Tag("teacher_{}")] = Field(
        default=None,
        description="The teacher's rows. null: judged as live ones are; spared: they earn what vanilla pays; "
        "clipped: judged, but none of them has an advantage below 0.",
    )


def clipped(A: "Tensor", seen: Seen) -> "Tensor":
    """Return the advantages `[G]` with those of the teacher's rows at 0 or above."""
    return A.where(seen.live, A.clamp(min=0))  # type: ignore[arg-type]
