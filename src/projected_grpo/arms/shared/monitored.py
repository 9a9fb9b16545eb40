"""Arms that are told by a monitor which rollouts are flagged."""

from typing import Annotated, Literal

from projected_grpo.arms import Arm, ArmKnobs, Tag
from projected_grpo.environment.monitors import MONITORS


class MonitorKnobs(ArmKnobs):
    """Whose flags the arm acts on."""

    monitor: Annotated[Literal[tuple(MONITORS)], Tag()]


class Monitored(Arm):
    """Gets flags beside rewards."""

    Knobs = MonitorKnobs

    @property
    def monitor(self) -> str:
        return self.knobs.monitor
