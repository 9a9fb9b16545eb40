"""GRPO as it is, without a defence."""

from projected_grpo.arms import Arm


class Vanilla(Arm):
    """Overrides nothing."""

    family = "none"
