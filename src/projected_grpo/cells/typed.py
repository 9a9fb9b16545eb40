"""What every model of config and questions is made of: closed, frozen, strict, each number with a bound.

Strict means that a value is what it stands as: 5.0 is no integer, "yes" no truth value, "3e-3" no number.
"""

from collections.abc import Collection, Hashable
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    StringConstraints,
    create_model,
)
from pydantic_core import PydanticCustomError

from projected_grpo.environment.levers import LOOPHOLES, NOVEL, TRAINABLE

NAME = r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,79}$"
PRESET = r"^[A-Za-z0-9_]{1,40}$"
MIX = r"^(0|1|0?\.[0-9]{1,9})$"
LINE = r"^[^\x00-\x1f\x7f-\x9f]{1,1000}$"
FOLDER = r"^[^\s{}\x00-\x1f\x7f-\x9f]{1,200}$"


class Model(BaseModel):
    """A mapping with known keys alone."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, populate_by_name=True
    )


def _trained(mode: Any) -> Any:
    if any(mode in names for names in NOVEL.values()):
        raise PydanticCustomError("value_error", TRAINABLE)
    return mode


# The loopholes that a corpus, a pool or a row may have.
Mode = Annotated[Literal[LOOPHOLES], BeforeValidator(_trained)]  # type: ignore[valid-type]
Name = Annotated[str, StringConstraints(pattern=NAME)]
PresetName = Annotated[str, StringConstraints(pattern=PRESET)]
MixName = Annotated[str, StringConstraints(pattern=MIX)]
Text = Annotated[str, StringConstraints(pattern=LINE)]
Adapter = Literal["antipasto", "lora"]
# Far above any use; what lies beyond would only allocate or loop without an end.
Count = Annotated[int, Field(ge=1, le=100_000)]
Tokens = Annotated[int, Field(ge=1, le=100_000)]
Problems = Annotated[int, Field(ge=1, le=10_000)]
Examples = Annotated[int, Field(ge=1, le=10_000_000)]
Axes = Annotated[int, Field(ge=1, le=10_000)]
GroupSize = Annotated[int, Field(ge=2, le=1_024)]
Seed = Annotated[int, Field(ge=0, le=2**31 - 1)]
Stream = Annotated[int, Field(ge=0, le=1_000)]  # the teacher pool's own lies above
Rate = Annotated[float, Field(gt=0, le=100)]  # of learning
Share = Annotated[float, Field(ge=0, le=1)]
Part = Annotated[float, Field(ge=0, lt=1)]  # a share, but not the whole
Factor = Annotated[float, Field(gt=0, le=1_000_000)]
Weight = Annotated[float, Field(ge=0, le=1_000)]

Item = TypeVar("Item", bound=Hashable)


def unique(items: Collection[Item]) -> Collection[Item]:
    """Return `items`. Raises where one stands twice."""
    if len(set(items)) < len(items):
        raise PydanticCustomError("unique", "each once")
    return items


# YAML has lists alone; a tuple cannot change.
Distinct = Annotated[
    tuple[Item, ...], Strict(False), AfterValidator(unique), Field(json_schema_extra={"uniqueItems": True})
]
NonEmpty = Annotated[
    tuple[Item, ...],
    Strict(False),
    Field(min_length=1, json_schema_extra={"uniqueItems": True}),
    AfterValidator(unique),
]


def partial(model: type[Model], name: str) -> type[Model]:
    """Return a model with the fields of `model`, none of them required; what is set is in `model_fields_set`.

    A key may be missing, but it may not be null: defaults are not validated, values are.
    """
    fields: dict[str, Any] = {
        key: (Annotated[field.annotation, field], None) for key, field in model.model_fields.items()
    }
    return create_model(name, __base__=Model, __doc__=model.__doc__, **fields)
