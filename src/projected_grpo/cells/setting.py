"""What a row says about a run: the settings that every run has, and the knobs of its arm. Nothing here knows torch.

Field by field stand here the default, what is allowed, and how the value stands in a cell's id (`Tag`).
"""

from typing import Annotated, Any

from pydantic import Field, SerializeAsAny, model_validator

from projected_grpo import arms
from projected_grpo.arms import ArmKnobs, Tag
from projected_grpo.cells.typed import Adapter, Mode, Model, NonEmpty, Part, Rate, Stream, Text

DEFAULT_ARM = "vanilla"


class Setting(Model):
    """A row's settings; the seed and the config's hyper-parameters complete them to a cell."""

    arm: str = Field(default=DEFAULT_ARM, description="What is done against hacking; has knobs of its own.")
    knobs: SerializeAsAny[ArmKnobs] = ArmKnobs()  # of that arm
    size: Annotated[Text | None, Tag()] = Field(
        default=None, description="Of the small model, a name under small.sizes; null: model.size."
    )
    variant: Annotated[Text | None, Tag()] = Field(
        default=None,
        description="Of the small model's corpus, a name under small.variants; null: small's own.",
    )
    adapter: Annotated[Adapter, Tag()] = Field(
        default="antipasto", description="What is trained, as that of the basis."
    )
    lr: Annotated[Rate | None, Tag("lr{}")] = Field(
        default=None, description="Learning rate; null: the config's."
    )
    off_policy: Annotated[bool, Tag("offpolicy")] = Field(
        default=False, description="The teacher rows' ratio to the pool enters the loss (R5)."
    )
    preset: Annotated[Text, Tag()] = Field(
        default="fast", description="A name under grpo.presets in the config."
    )
    modes: Annotated[NonEmpty[Mode] | None, Tag()] = Field(
        default=None, description="Loopholes of the problems; null: those of the pool."
    )
    held_out_mode: Annotated[Mode | None, Tag("no_{}")] = Field(
        default=None, description="Its prompts get live samples only."
    )
    final_eval: Annotated[bool, Tag("final")] = Field(
        default=False, description="Kept and ablated rates after the last step."
    )
    stream: Annotated[Stream, Tag("stream{}")] = Field(
        default=0, description="Sampling stream within a replication; the pool has its own."
    )
    mix: Part = Field(default=0.125, description="Share of teacher rows in a group.")

    @model_validator(mode="before")
    @classmethod
    def _of_its_arm(cls, values: Any) -> Any:
        """Read stored knobs as those of the arm; without any they are its defaults, so that one run has one text."""
        if isinstance(values, dict) and isinstance(values.get("knobs", {}), dict):
            arm = arms.load(values.get("arm", DEFAULT_ARM))
            values = {**values, "knobs": arm.Knobs.model_validate(values.get("knobs", {}))}
        return values

    @property
    def defence(self) -> type[arms.Arm]:
        """The class of its arm."""
        return arms.load(self.arm)

    @property
    def needs(self) -> arms.Needs:
        """What its arm needs."""
        return self.defence.needs(self.knobs)

    @property
    def basis(self) -> str | None:
        """Name of the basis that its arm acts along, if any."""
        return self.needs.basis

    @property
    def source(self) -> str | None:
        """Name of the basis whose pairs or control its arm acts by, as axes V or as a direction, if any."""
        return self.needs.basis or self.needs.direction

    def flat(self) -> dict[str, Any]:
        """Every setting and every knob of its arm by name, as a row says them."""
        return self.knobs.model_dump() | self.model_dump(exclude={"knobs"})

    def knob(self, name: str) -> Any:
        """A knob of its arm; None where the arm has no such knob."""
        return getattr(self.knobs, name, None)
