"""Only the reward changes: it comes from the hidden tests alone. What a defence is held against, not a defence."""

from typing import TYPE_CHECKING

from projected_grpo.arms import Arm, Seen
from projected_grpo.arms.shared.teacher_rows import TeacherRowsKnobs, clipped

if TYPE_CHECKING:
    from torch import Tensor


class GtOnly(Arm):
    """Prompts keep their lever; using it pays nothing, in the teacher's rows either unless they are spared."""

    Knobs = TeacherRowsKnobs
    family = "reward"
    reward = "oracle"

    @property
    def teacher_reward(self) -> str:
        return Arm.reward if self.knobs.teacher == "spared" else self.reward

    def advantages(self, A: "Tensor", seen: Seen) -> "Tensor":
        return clipped(A, seen) if self.knobs.teacher == "clipped" else A
