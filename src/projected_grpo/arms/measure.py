"""Vanilla with its gradient measured along a basis: the same run, and what an intervention would have met."""

from projected_grpo.arms.shared.along_basis import AlongBasis


class Measure(AlongBasis):
    """Holds V and changes nothing."""

    family = "none"
