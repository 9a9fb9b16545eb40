"""A KL term to the base (K3 estimate, docs/method.md, "Loss")."""

from typing import Annotated, Any

from pydantic import Field

from projected_grpo.arms import Arm, ArmKnobs, Tag


class KlKnobs(ArmKnobs):
    """How strong."""

    beta: Annotated[float, Tag("beta{}"), Field(gt=0, le=1000)]  # weight of the term


class Kl(Arm):
    """Changes nothing but the loss."""

    Knobs = KlKnobs
    family = "loss"

    @classmethod
    def training(cls, knobs: KlKnobs, training: Any) -> Any:
        return training.model_copy(update={"beta": knobs.beta})
