"""Arms that are told by a monitor which rollouts are flagged."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from projected_grpo.arms import Arm, ArmKnobs, MustGive, Needs, Tag
from projected_grpo.arms.shared.directed import LAYER, PAIRS, Layer
from projected_grpo.environment.monitors import COIN, CRITIC, DIRECTION, NAMES, TRUTH

if TYPE_CHECKING:
    from projected_grpo.arms import Family
    from projected_grpo.method.concept import Concept


class MonitorKnobs(ArmKnobs):
    """Whose flags the arm acts on."""

    monitor: Annotated[Literal[NAMES], Tag()]  # type: ignore[valid-type]
    direction: Annotated[str | None, Tag()] = Field(default=None, validate_default=True, description=PAIRS)
    layer: Layer = LAYER

    @field_validator("direction")
    @classmethod
    def _of_that_monitor_alone(cls, direction: str | None, info: ValidationInfo) -> str | None:
        monitor = info.data.get("monitor")
        if (direction is None) == (monitor == DIRECTION):
            wanted = "a basis" if monitor == DIRECTION else "null"
            raise PydanticCustomError("value_error", f"{wanted} with monitor {monitor}")
        return direction

    @field_validator("layer")
    @classmethod
    def _of_a_direction(cls, layer: int | None, info: ValidationInfo) -> int | None:
        if layer is not None and info.data.get("monitor") != DIRECTION:
            raise PydanticCustomError("value_error", f"null with monitor {info.data.get('monitor')}")
        return layer


class Monitored(Arm):
    """Gets flags beside rewards."""

    Knobs = MonitorKnobs
    if TYPE_CHECKING:
        family: ClassVar[Family]
    family = "reward"

    @classmethod
    def must_give(cls, knobs: MonitorKnobs) -> MustGive:
        """A monitor that reads verdicts, however well; `direction` reads activations alone, a coin nothing."""
        without: dict[str, MustGive]
        without = {DIRECTION: "pairs", CRITIC: "critic", COIN: "nothing", TRUTH: "oracle"}
        return without.get(knobs.monitor, "monitor")

    @classmethod
    def needs(cls, knobs: MonitorKnobs) -> Needs:
        critic = knobs.monitor == CRITIC
        return Needs(pairs=knobs.direction, direction=knobs.direction, fitted=True, critic=critic)

    @property
    def monitor(self) -> str:
        return self.knobs.monitor

    @property
    def reads(self) -> "Concept | None":
        return self.given.concept if self.knobs.monitor == DIRECTION else None
