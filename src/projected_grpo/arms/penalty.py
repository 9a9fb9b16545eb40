"""A flagged rollout earns less, the teacher's rows as well unless they are spared."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from projected_grpo.arms import Seen, Tag
from projected_grpo.arms.shared.monitored import Monitored, MonitorKnobs
from projected_grpo.arms.shared.teacher_rows import TeacherRowsKnobs, clipped

if TYPE_CHECKING:
    from torch import Tensor


class PenaltyKnobs(TeacherRowsKnobs, MonitorKnobs):
    """How much less, and whose rows."""

    cost: Annotated[float, Tag("cost{}"), Field(gt=0, le=100)] = 3.0  # taken off the reward


class Penalty(Monitored):
    """R - cost where the monitor flags."""

    Knobs = PenaltyKnobs

    def rewards(self, rewards: "Tensor", seen: Seen) -> "Tensor":
        flags = seen.flags & seen.live if self.knobs.teacher == "spared" else seen.flags  # type: ignore[operator]
        return rewards - self.knobs.cost * flags

    def advantages(self, A: "Tensor", seen: Seen) -> "Tensor":
        return clipped(A, seen) if self.knobs.teacher == "clipped" else A
