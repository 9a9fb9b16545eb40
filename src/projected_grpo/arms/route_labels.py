"""Gradient routing by label: flagged rollouts train the quarantine alone, the others delta_S alone.

Cloud et al. (arXiv:2410.04332), the labels being a monitor's (docs/method.md, "Routing").
"""

from typing import TYPE_CHECKING

from projected_grpo.arms import Seen
from projected_grpo.arms.shared.monitored import Monitored
from projected_grpo.arms.shared.quarantine import Quarantined

if TYPE_CHECKING:
    from torch import Tensor

    from projected_grpo.method.adapter import Parameters
    from projected_grpo.method.gradients import Gradient


class RouteLabels(Quarantined, Monitored):
    """Rows keep the advantages that they have in the whole group; the gradient is split by row, exactly."""

    n_labels = 2

    def labels(self, seen: Seen) -> "Tensor":
        return seen.flags.long()  # type: ignore[union-attr]

    def split_gradient(self, gradient: "Gradient") -> "tuple[Parameters, Parameters]":
        unflagged, flagged = gradient.by_label
        return unflagged, flagged
