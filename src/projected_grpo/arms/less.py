"""Vanilla that trains less: a smaller learning rate. The frontier that every defence has to beat."""

from typing import Annotated, Any

from pydantic import Field

from projected_grpo.arms import Arm, ArmKnobs, Tag


class LessKnobs(ArmKnobs):
    """How much less."""

    scale: Annotated[float, Tag("x{}"), Field(gt=0, lt=1)]  # of the learning rate


class Less(Arm):
    """Changes nothing but the rate."""

    Knobs = LessKnobs
    family = "less"
    replaces = ("lr",)

    @classmethod
    def training(cls, knobs: LessKnobs, training: Any) -> Any:
        return training.model_copy(update={"lr": training.lr * knobs.scale})
