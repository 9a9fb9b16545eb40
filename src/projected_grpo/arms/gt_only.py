"""Only the reward changes: it comes from the hidden tests alone. What a defence is held against, not a defence."""

from projected_grpo.arms import Arm


class GtOnly(Arm):
    """Prompts keep their lever; using it pays nothing, in the teacher's rows either."""

    family = "reward"
    reward = "oracle"
