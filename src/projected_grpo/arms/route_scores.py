"""Gradient routing by concept score: a row trains the quarantine, delta_S, or both, by two cuts fitted on the pairs.

vGROUT's routeA, whose own finding is that authored pairs lie inside the band of random directions (docs/method.md,
"Routing"). Which rows are cut off is read from activations alone.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from projected_grpo.arms import Needs, Seen
from projected_grpo.arms.shared.directed import DirectionKnobs, Scored
from projected_grpo.arms.shared.quarantine import Quarantined

if TYPE_CHECKING:
    from torch import Tensor

    from projected_grpo.method.adapter import Parameters
    from projected_grpo.method.gradients import Gradient


class RouteScores(Quarantined, Scored):
    """Labels: 0 below both cuts, delta_S alone; 1 above both, the quarantine alone; 2 between, both."""

    n_labels = 3

    @classmethod
    def needs(cls, knobs: DirectionKnobs) -> Needs:
        return replace(super().needs(knobs), fitted=True)

    def labels(self, seen: Seen) -> "Tensor":
        low, high = self.given.concept.cuts  # type: ignore[union-attr]
        return (seen.scores > low).long() * 2 - (seen.scores > high).long()  # type: ignore[operator, union-attr]

    def split_gradient(self, gradient: "Gradient") -> "tuple[Parameters, Parameters]":
        clean, hack, between = gradient.by_label
        kept, parked = ({name: g + between[name] for name, g in own.items()} for own in (clean, hack))
        return kept, parked
