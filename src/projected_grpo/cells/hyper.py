"""The numbers of training: what `grpo` and its presets say, resolved to one `Training` for a run."""

from typing import Annotated

from pydantic import AfterValidator, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from projected_grpo.cells.knobs import Adapter
from projected_grpo.cells.typed import (
    Count,
    Factor,
    GroupSize,
    MixName,
    Model,
    Part,
    PresetName,
    Problems,
    Rate,
    Share,
    Tokens,
    Weight,
    partial,
)
from projected_grpo.errors import SettingError, nearest


class Hyper(Model):
    """What a preset may say in place of `grpo`."""

    max_new: Tokens = Field(description="Tokens a completion may have.")
    prompts: Problems = Field(description="Prompts a step.")
    lr: Rate = Field(description="Learning rate.")
    betas: Annotated[tuple[Part, Part], Field(strict=False)] = Field(description="Of AdamW.")
    weight_decay: Weight = Field(description="Of AdamW.")
    clip: Factor | None = Field(description="Gradient norm limit; null for none.")
    warmup: Share = Field(description="Share of the steps.")
    beta: Weight = Field(description="Weight of the K3 KL term to the reference.")
    micro_batch_tokens: Annotated[int, Field(ge=1, le=100_000_000)] = Field(
        description="Tokens of one forward and backward."
    )
    teacher_steps: Count | None = Field(
        description="Steps with teacher rows; after them live ones take their place. Null: all."
    )


def _each_mix_once(sizes: dict[str, int]) -> dict[str, int]:
    if len({float(mix) for mix in sizes}) < len(sizes):
        raise PydanticCustomError("value_error", "each mix once")
    return sizes


Group = Annotated[
    Annotated[GroupSize, Tag("<one>")]
    | Annotated[
        dict[MixName, GroupSize], Field(min_length=1), AfterValidator(_each_mix_once), Tag("<by mix>")
    ],
    Discriminator(lambda value: {int: "<one>", dict: "<by mix>"}.get(type(value))),
]


class Preset(partial(Hyper, "PresetHyper")):
    """A schedule: steps, the group size G, and any other key of grpo."""

    steps: Count = Field(description="Optimizer steps of a run.")
    group: Group = Field(description="G, or G for each mix.")


class Training(Hyper):
    """All numbers of one run's training."""

    steps: Count
    group: GroupSize

    def teacher_rows(self, mix: float, step: int = 1) -> int:
        """Return G_t = round(G mix), the rows of a group that come from the teacher's pool at a step."""
        over = self.teacher_steps is not None and step > self.teacher_steps
        return 0 if over else round(self.group * mix)


class Grpo(Hyper):
    """Training of the runs."""

    lora_lr: Rate = Field(description="In place of lr where the adapter is LoRA.")
    presets: dict[PresetName, Preset] = Field(
        min_length=1, description="Named schedules: steps, the group size G, and any other key of grpo."
    )

    def training(self, preset: str, mix: float, adapter: Adapter, lr: float | None = None) -> Training:
        """Return the numbers of a run. lr: the row's own, null for the config's.

        Raises SettingError on an unknown preset, a mix without a group size, or one that leaves the teacher no row.
        """
        if preset not in self.presets:
            raise SettingError("preset", f"no preset {preset!r}; {nearest(preset, self.presets)}")
        own = self.presets[preset].model_dump(exclude_unset=True)
        if isinstance(own["group"], dict):
            sizes = {float(size): g for size, g in own["group"].items()}
            if mix not in sizes:
                allowed = ", ".join(own["group"])
                raise SettingError(
                    "mix", f"{mix:g} has no group size in preset {preset!r}, allowed: {allowed}"
                )
            own["group"] = sizes[mix]
        numbers = self.model_dump(exclude={"lora_lr", "presets"}) | own
        if adapter == "lora":
            numbers["lr"] = self.lora_lr
        if lr is not None:
            numbers["lr"] = lr
        training = Training.model_validate(numbers)
        if mix and not training.teacher_rows(mix):
            group = training.group
            raise SettingError(
                "mix",
                f"{mix:g} of the group of {group} in preset {preset!r} is no row, allowed: 0, or at least "
                f"one row of the teacher in {group}",
            )
        return training
