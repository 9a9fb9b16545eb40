"""What `grpo` and its presets say, resolved to one `Training` for a run."""

from typing import Annotated

from pydantic import AfterValidator, Field, Tag
from pydantic_core import PydanticCustomError

from projected_grpo.cells.hyper import Hyper, Training
from projected_grpo.cells.typed import Adapter, Count, GroupSize, MixName, PresetName, Rate, partial
from projected_grpo.errors import SettingError, nearest
from projected_grpo.schema_errors import BY_KIND


def _each_mix_once(sizes: dict[str, int]) -> dict[str, int]:
    if len({float(mix) for mix in sizes}) < len(sizes):
        raise PydanticCustomError("value_error", "each mix once")
    return sizes


ByMix = Annotated[dict[MixName, GroupSize], Field(min_length=1), AfterValidator(_each_mix_once)]
Group = Annotated[Annotated[GroupSize, Tag("<int>")] | Annotated[ByMix, Tag("<dict>")], BY_KIND]


class Preset(partial(Hyper, "PresetHyper")):  # type: ignore[misc]
    """A schedule: steps, the group size G, and any other key of grpo."""

    steps: Count = Field(description="Optimizer steps of a run.")
    group: Group = Field(description="G, or G for each mix.")


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
            sizes = {float(size): group for size, group in own["group"].items()}
            if mix not in sizes:
                allowed = f"in preset {preset!r}, allowed: {', '.join(own['group'])}"
                raise SettingError("mix", f"{mix:g} has no group size {allowed}")
            own["group"] = sizes[mix]
        numbers = self.model_dump(exclude={"lora_lr", "presets"}) | own
        if lr is not None or adapter == "lora":
            numbers["lr"] = self.lora_lr if lr is None else lr
        training = Training.model_validate(numbers)
        if mix and not training.teacher_rows(mix):
            group = f"the group of {training.group} in preset {preset!r}"
            allowed = f"allowed: 0, or at least one row of the teacher in {training.group}"
            raise SettingError("mix", f"{mix:g} of {group} is no row, {allowed}")
        return training
