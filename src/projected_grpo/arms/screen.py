"""Flagged rollouts leave the group before its advantages; the loss keeps its denominator."""

from typing import TYPE_CHECKING

from projected_grpo.arms import Seen
from projected_grpo.arms.shared.monitored import Monitored

if TYPE_CHECKING:
    from torch import Tensor


class Screen(Monitored):
    """What is flagged teaches nothing, neither by itself nor as part of the group's mean."""

    def keep(self, rewards: "Tensor", seen: Seen) -> "Tensor":
        return ~seen.flags  # type: ignore[operator]
