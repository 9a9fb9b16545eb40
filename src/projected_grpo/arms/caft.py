"""Concept ablation: the direction is taken out of the residual stream where gradients are taken, not at deployment.

Casademunt et al. (arXiv:2507.16795), who fine-tune on given texts: forward and backward run through the ablated stream.
So here: sampling is not ablated, and old log-probs are the detached ones of the ablated forward.
"""

from typing import TYPE_CHECKING

from projected_grpo.arms.shared.directed import Directed

if TYPE_CHECKING:
    from torch import Tensor

    from projected_grpo.method.concept import Concept
    from projected_grpo.model.decoder import Residual


class Caft(Directed):
    """x - (u x) u after one layer, at every token: what the layers behind would read off u teaches nothing."""

    @property
    def residual(self) -> "Residual":
        concept: Concept = self.given.concept  # type: ignore[assignment]
        u = concept.direction

        def ablated(layer: int, x: "Tensor") -> "Tensor":
            """In float32, rounded once."""
            return x - ((x.float() @ u)[:, None] * u).to(x.dtype) if layer == concept.layer else x

        return ablated
