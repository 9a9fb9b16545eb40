"""JSON schemas of config and questions, and their errors in one line of plain words."""

import copy
import json
import math
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from projected_grpo.errors import nearest

SCHEMAS = Path(__file__).resolve().parents[3] / "workflow" / "schemas"
# Complete in the merged config; a single file may leave parts of them to the one below it.
SECTIONS = ("model", "small", "pool", "grpo", "probe", "basis", "self_taught")
PRESET = ("steps", "group")  # of each entry of grpo.presets; its other keys come from grpo

_types = Draft202012Validator.TYPE_CHECKER.redefine_many(
    {
        "integer": lambda _, value: (
            isinstance(value, int) and not isinstance(value, bool)
        ),  # 5.0 is no integer
        "array": lambda _, value: isinstance(value, list | tuple),
    }
)
Validator = extend(Draft202012Validator, type_checker=_types)


def first_error(name: str, value: object, complete: bool = False) -> tuple[list[str | int], str] | None:
    """Return (key path, problem) of the first error of `value` under the schema `name`, or None.

    complete: of the config, every key without a default must be there, as where its layers are merged.
    """
    if wrong := _not_plain(value, []):
        return wrong
    schema = load_schema(name)
    if complete:
        schema = _completed(schema)
    # A misspelt key is an unknown and a missing one at once: the unknown one says more.
    errors = sorted(Validator(schema).iter_errors(value), key=lambda error: error.validator == "required")
    return _explain(errors[0], schema) if errors else None


def _not_plain(value: object, keys: list[str | int]) -> tuple[list[str | int], str] | None:
    """What YAML has and JSON has not, so that no schema can speak of it: keys that are no text, nan, infinity."""
    if isinstance(value, float) and not math.isfinite(value):
        return keys, f"{value}, allowed: a finite number"
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                return [*keys, str(key)], f"{short(key)} as a name, allowed: text, so write it in quotes"
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return next((wrong for key, item in inner if (wrong := _not_plain(item, [*keys, key]))), None)


@cache
def load_schema(name: str) -> dict:
    """The schema `workflow/schemas/{name}.schema.json`."""
    return json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))


def _completed(schema: dict) -> dict:
    """The config's schema with every property required that has no default, at the top and in each section."""
    schema = copy.deepcopy(schema)
    properties = schema["properties"]
    for section in SECTIONS:
        properties[section]["required"] = _required(properties[section])
    properties["grpo"]["properties"]["presets"]["additionalProperties"]["required"] = list(PRESET)
    schema["required"] = _required(schema)
    return schema


def _required(schema: dict) -> list[str]:
    return [key for key, value in schema["properties"].items() if "default" not in value]


def key_path(keys: Sequence[str | int]) -> str:
    """`["Q10", "rows", 2, "basis"]` -> `Q10.rows[2].basis`."""
    path = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return path.removeprefix(".") or "(top)"


def short(value: object) -> str:
    """A value on one line of at most 80 characters, as YAML would say it."""
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _explain(error: ValidationError, schema: dict) -> tuple[list[str | int], str]:
    keys, value = list(error.absolute_path), error.instance
    if error.validator == "anyOf" and (inner := _only_branch(error)):
        return _explain(inner, schema)
    if error.validator == "additionalProperties":
        known = error.schema.get("properties", {})
        unknown = next(key for key in value if key not in known)
        return [*keys, str(unknown)], f"unknown key; {nearest(unknown, _names(known))}"
    if error.validator == "required":
        missing = next(key for key in error.validator_value if key not in value)
        return [*keys, missing], f"missing; required: {', '.join(error.validator_value)}"
    if error.validator == "enum":
        return keys, f"{short(value)}; {nearest(value, map(_word, error.validator_value))}"
    if "propertyNames" in error.absolute_schema_path:
        return [*keys, str(value)], f"{short(value)} as a name, allowed: {describe(error.schema, schema)}"
    return keys, f"{short(value)}, allowed: {describe(error.schema, schema)}"


def _only_branch(error: ValidationError) -> ValidationError | None:
    """The first error of the one alternative whose type fits the value; None where none or several fit."""
    branches: dict[int, list[ValidationError]] = {}
    for inner in error.context:
        branches.setdefault(inner.schema_path[0], []).append(inner)
    fitting = [
        errors
        for errors in branches.values()
        if not any(e.validator == "type" and not e.path for e in errors)
    ]
    return fitting[0][0] if len(fitting) == 1 else None


def describe(schema: dict, root: dict) -> str:
    """What a schema allows, in words."""
    while "$ref" in schema:
        target = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        schema = target
    if "anyOf" in schema:
        return ", or ".join(describe(branch, root) for branch in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(map(_word, schema["enum"]))
    types = schema.get("type", "string")
    types = [types] if isinstance(types, str) else types
    return " or ".join(_describe_type(kind, schema, root) for kind in types)


def _describe_type(kind: str, schema: dict, root: dict) -> str:
    if kind in ("integer", "number"):
        return f"{'an integer' if kind == 'integer' else 'a number'}{_bounds(schema)}"
    if kind == "array":
        size = {(2, 2): "two of: "}.get((schema.get("minItems"), schema.get("maxItems")), "")
        different = "different " if schema.get("uniqueItems") else ""
        empty = "non-empty " if schema.get("minItems") else ""
        return f"a {empty}list of {size}{different}{_plural(describe(schema['items'], root))}"
    if kind == "object":
        return "a non-empty mapping" if schema.get("minProperties") else "a mapping"
    if kind == "string" and "pattern" in schema:
        return schema.get("description") or f"text like {schema['pattern']}"
    return {"string": "text that is not empty", "boolean": "true or false", "null": "null"}[kind]


def _plural(words: str) -> str:
    """`an integer >= 1` -> `integers >= 1`; lists of words stay."""
    article, _, noun = words.partition(" ")
    if article not in ("a", "an"):
        return words
    kind, space, rest = noun.partition(" ")
    return f"{kind}s{space}{rest}"


def _bounds(schema: dict) -> str:
    signs = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
    return " and".join(f" {sign} {schema[key]}" for key, sign in signs.items() if key in schema)


def _names(keys: Iterable[str]) -> list[str]:
    return [key for key in keys if not key.startswith("$")]


def _word(value: object) -> str:
    return "null" if value is None else str(value)
