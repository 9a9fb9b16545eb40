"""A row's mapping -> its setting. Apart from `Setting`, so that a word in a message is no change of any run's code."""

from typing import Any

from projected_grpo import arms
from projected_grpo.cells.questions import Heading
from projected_grpo.cells.setting import DEFAULT_ARM, Setting
from projected_grpo.errors import nearest
from projected_grpo.schema_errors import Misfit, short, validate

# Of every row; the others are knobs of its arm, or say what the row is (`Heading`).
ROW = [name for name in Setting.model_fields if name != "knobs"]


def make_setting(values: dict) -> Setting:
    """Build a setting from a row's mapping. Raises Misfit, with the key path in the row."""
    name = values.get("arm", DEFAULT_ARM)
    if name not in arms.names():
        raise Misfit(["arm"], f"{short(name)}; {nearest(str(name)[:80], arms.names())}")
    arm = arms.load(name)
    knobs = {key: value for key, value in values.items() if key not in ROW}
    for key in knobs:
        if key not in arm.Knobs.model_fields:
            raise Misfit([key], _unknown(key, knobs[key], name, arm))
    for key in arm.replaces:
        if values.get(key) is not None:
            raise Misfit([key], f"{short(values[key])}, allowed with arm {name!r}: null, its knobs decide it")
    for key, field in arm.Knobs.model_fields.items():
        if field.is_required() and key not in knobs:
            raise Misfit([key], f"missing, arm {name!r} needs it")
    core = {key: value for key, value in values.items() if key in ROW}
    return validate(Setting, {**core, "knobs": validate(arm.Knobs, knobs).model_dump()})


def _unknown(key: str, value: Any, name: str, arm: type[arms.Arm]) -> str:
    others = [other for other in arms.names() if key in arms.load(other).Knobs.model_fields]
    if others:
        return f"{short(value)} with arm {name!r}, allowed beside arm {', '.join(others)}"
    return f"unknown key; {nearest(key[:80], [*Heading.model_fields, *ROW, *arm.Knobs.model_fields])}"
