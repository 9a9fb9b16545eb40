"""A flagged rollout earns less, the teacher's rows as well."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from projected_grpo.arms import Seen, Tag
from projected_grpo.arms.shared.monitored import Monitored, MonitorKnobs

if TYPE_CHECKING:
    from torch import Tensor


class PenaltyKnobs(MonitorKnobs):
    """How much less."""

    cost: Annotated[float, Tag("cost{}"), Field(gt=0, le=100)] = 3.0  # taken off the reward


class Penalty(Monitored):
    """R - cost where the monitor flags."""

    Knobs = PenaltyKnobs

    def rewards(self, rewards: "Tensor", seen: Seen) -> "Tensor":
        return rewards - self.knobs.cost * seen.flags
