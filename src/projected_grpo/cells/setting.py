"""What a row says about a run: the settings that every run has, and the knobs of its arm. Nothing here knows torch.

Field by field stand here the default, what is allowed, and how the value stands in a cell's id (`Tag`).
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, SerializeAsAny, ValidationError, model_validator

from projected_grpo import arms
from projected_grpo.arms import ArmKnobs, Tag
from projected_grpo.cells.typed import Model, unique
from projected_grpo.errors import UserError, nearest

DEFAULT_ARM = "vanilla"


def _each_once(items: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return items and unique(items)


class Setting(Model):
    """A row's settings; the seed and the config's hyper-parameters complete them to a cell."""

    arm: str = DEFAULT_ARM  # a file of `arms/`
    knobs: SerializeAsAny[ArmKnobs] = ArmKnobs()  # of that arm
    adapter: Annotated[Literal["antipasto", "lora"], Tag()] = "antipasto"
    lr: Annotated[float | None, Tag("lr{}"), Field(gt=0, le=1e6)] = None  # null: the config's
    off_policy: Annotated[bool, Tag("offpolicy")] = (
        False  # teacher rows' ratio to the pool enters the loss (R5)
    )
    preset: Annotated[str, Tag()] = "fast"
    modes: Annotated[tuple[str, ...] | None, AfterValidator(_each_once), Tag()] = (
        None  # loopholes of the problems; null: those of the pool
    )
    held_out_mode: Annotated[str | None, Tag("no_{}")] = None  # its prompts get live samples only
    final_eval: Annotated[bool, Tag("final")] = False  # kept and ablated rates after the last step
    stream: Annotated[int, Tag("stream{}"), Field(ge=0, le=1000)] = 0  # sampling stream within a replication
    mix: Annotated[float, Field(ge=0, lt=1)] = 0.125  # share of teacher rows in a group

    @model_validator(mode="before")
    @classmethod
    def _of_its_arm(cls, values: Any) -> Any:
        """Read stored knobs as those of the arm, and lists, which is all that YAML and JSON have, as tuples."""
        if not isinstance(values, dict):
            return values
        if isinstance(values.get("modes"), list):
            values = {**values, "modes": tuple(values["modes"])}
        if isinstance(values.get("knobs"), dict):
            arm = arms.load(values.get("arm", DEFAULT_ARM))
            values = {**values, "knobs": arm.Knobs.model_validate(values["knobs"])}
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

    def knob(self, name: str) -> Any:
        """A knob of its arm; None where the arm has no such knob."""
        return getattr(self.knobs, name, None)


ROW = {name for name in Setting.model_fields if name != "knobs"}


def make_setting(values: dict, where: str) -> Setting:
    """Build a setting from a row's mapping. Raises UserError that names `where`, the key and what is allowed."""
    name = values.get("arm", DEFAULT_ARM)
    if name not in arms.names():
        raise UserError(f"{where}.arm: unknown arm {name!r}; {nearest(name, arms.names())}")
    arm = arms.load(name)
    own = {key: value for key, value in values.items() if key not in ROW}
    for key in own:
        if key not in arm.Knobs.model_fields:
            raise UserError(f"{where}.{key}: {_unknown(key, name, arm)}")
    try:
        knobs = arm.Knobs.model_validate(_numbers(own, arm.Knobs))
        core = {key: value for key, value in values.items() if key in ROW}
        return Setting.model_validate({**_numbers(core, Setting), "knobs": knobs})
    except ValidationError as error:
        first = error.errors()[0]
        keys = "".join(f".{key}" for key in first["loc"])
        problem = f"missing, arm {name!r} needs it" if first["type"] == "missing" else first["msg"]
        raise UserError(f"{where}{keys}: {problem[0].lower()}{problem[1:]}") from error


def _unknown(key: str, name: str, arm: type[arms.Arm]) -> str:
    others = [other for other in arms.names() if key in arms.load(other).Knobs.model_fields]
    if others:
        return f"arm {name!r} has no such knob; allowed beside arm {', '.join(others)}"
    return f"unknown setting; {nearest(key, sorted(ROW | set(arm.Knobs.model_fields)))}"


def _numbers(values: dict, model: type[BaseModel]) -> dict:
    """Let a whole number stand where a float is asked for: equal settings have equal ids."""
    return {
        key: float(value) if type(value) is int and _takes_float(model, key) else value
        for key, value in values.items()
    }


def _takes_float(model: type[BaseModel], key: str) -> bool:
    kind = model.model_fields[key].annotation
    return kind is float or float in getattr(kind, "__args__", ())


def tags(model: BaseModel) -> list[str]:
    """Return the id parts of the fields that differ from their defaults, in the order of the fields."""
    parts = []
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        tag = next((entry for entry in field.metadata if isinstance(entry, Tag)), None)
        if tag and value is not None and (field.is_required() or value != field.default):
            parts.append(tag.of(value))
    return parts


def cell_id(setting: Setting, seed: int) -> str:
    """Return a readable id: arm, its knobs and other settings that differ from their defaults, mix and seed."""
    return "-".join([setting.arm, *tags(setting.knobs), *tags(setting), f"m{setting.mix:g}", f"s{seed}"])
