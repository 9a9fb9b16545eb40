"""Take the hack-ward part out of the gradient, or out of what AdamW applies (docs/method.md, "Projection")."""

from projected_grpo.arms.shared.along_basis import Projection


class Erase(Projection):
    """What is split off is gone."""
