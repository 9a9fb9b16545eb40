"""What is wrong with a value, in one line of plain words: which key, the value, what is allowed.

pydantic finds the error, the model's JSON schema says what is allowed there.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, Discriminator, ValidationError
from pydantic_core import ErrorDetails

from projected_grpo.errors import UserError, nearest

Keys = list[str | int]
Fail = Callable[[Keys, str], NoReturn]  # (key path, problem) -> UserError
M = TypeVar("M", bound=BaseModel)
MISSING = object()  # where a key path leads
WORDS: dict[str, str] = {}  # what a pattern allows, in words


def _kind(value: object) -> str:
    kinds: dict[str, type] = {"<list>": tuple, "<dict>": BaseModel}
    return next((tag for tag, of in kinds.items() if isinstance(value, of)), f"<{type(value).__name__}>")


BY_KIND = Discriminator(_kind)  # alternatives tagged by what YAML has: "<int>", "<str>", "<list>", "<dict>"


class Misfit(UserError):
    """A value that is not what its model wants: the key path, and the problem in words."""

    def __init__(self, keys: Sequence[str | int], problem: str):
        super().__init__(f"{key_path(keys)}: {problem}")
        self.keys, self.problem = list(keys), problem


def below(fail: Fail, *keys: str | int) -> Fail:
    """Return a `fail` whose key paths begin at `keys`."""
    return lambda rest, problem: fail([*keys, *rest], problem)


def validate(model: type[M], value: object) -> M:
    """Return `value` as a `model`. Raises Misfit for the first error."""
    _plain(value, [])
    try:
        return model.model_validate(value)
    except ValidationError as error:
        errors = error.errors(include_url=False)
    # A misspelt key is an unknown and a missing one at once: the unknown one says more.
    raise _misfit(min(errors, key=lambda error: error["type"] == "missing"), value, json_schema(model))


def places(model: type[BaseModel], value: object) -> list[Keys]:
    """Return the key path of every error."""
    try:
        model.model_validate(value)
    except ValidationError as error:
        return [keys_of(found) for found in error.errors(include_url=False)]
    return []


def keys_of(error: ErrorDetails) -> Keys:
    """Return where an error stands, without pydantic's own words for keys and alternatives."""
    return [key for key in error["loc"] if key != "[key]" and not str(key).startswith("<")]


@cache
def json_schema(model: type[BaseModel]) -> dict:
    """Return the model's JSON schema as pydantic writes it."""
    return model.model_json_schema()


def key_path(keys: Sequence[str | int]) -> str:
    """`["Q10", "rows", 2, "basis"]` -> `Q10.rows[2].basis`."""
    path = "".join(f"[{key}]" if isinstance(key, int) else f".{_printable(key)}" for key in keys)
    return path.removeprefix(".") or "(top)"


def short(value: object) -> str:
    """A value on one line of at most 80 characters, as YAML would say it."""
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else ascii_repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def ascii_repr(value: object) -> str:
    """`repr`, but with surrogates, which cannot be printed, written out."""
    return repr(value).encode("utf-8", "backslashreplace").decode()


def _printable(key: str | int) -> str:
    key = key if isinstance(key, str) and key.isprintable() else ascii_repr(key)
    return key if len(key) <= 80 else key[:77] + "..."


def _plain(value: object, keys: Keys) -> None:
    """Raise on what YAML has and JSON has not: keys that are no text, nan, infinity."""
    if isinstance(value, float) and not math.isfinite(value):
        raise Misfit(keys, f"{value}, allowed: a finite number")
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                problem = f"{short(key)} as a name, allowed: text, so write it in quotes"
                own = str(key) if isinstance(key, int) else key  # an integer would be a place in a list
                raise Misfit([*keys, own], problem)
    for key, item in children(value):
        _plain(item, [*keys, key])


def children(value: object) -> Iterable[tuple[str | int, object]]:
    """What stands below a mapping or a list, by key; nothing below any other value."""
    if isinstance(value, Mapping):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def get(value: Any, keys: Sequence[str | int]) -> Any:
    """The value at a key path, `MISSING` where it leads nowhere."""
    for key in keys:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return MISSING
    return value


def _misfit(error: ErrorDetails, value: object, root: dict) -> Misfit:
    keys, kind, found = keys_of(error), error["type"], error["input"]
    if kind == "missing" and isinstance(keys[-1], int):  # a list that is too short
        keys, kind, found = keys[:-1], "too_short", error["input"]
    if kind == "extra_forbidden":
        known = _at(root, root, keys[:-1], value).get("properties", {})
        allowed = [key for key in known if not key.startswith("$")]
        return Misfit(keys, f"unknown key; {nearest(_printable(keys[-1]), allowed)}")
    if kind == "missing":
        required = _at(root, root, keys[:-1], value).get("required", [keys[-1]])
        return Misfit(keys, f"missing; required: {', '.join(required)}")
    if error["loc"] and error["loc"][-1] == "[key]":
        names = _at(root, root, keys[:-1], value)
        if words := _choices(names.get("propertyNames", {})):
            return Misfit(keys, f"unknown key; {nearest(_printable(keys[-1]), words)}")
        pattern = next(iter(names.get("patternProperties", {"": None})))
        return Misfit(keys, f"{short(found)} as a name, allowed: {WORDS.get(pattern, 'text')}")
    if kind == "value_error":
        return Misfit(keys, f"{short(found)}, allowed: {error['msg'].removeprefix('Value error, ')}")
    schema = _at(root, root, keys, value)
    if words := _choices(schema):
        return Misfit(keys, f"{short(found)}; {nearest(found if isinstance(found, str) else '', words)}")
    return Misfit(keys, f"{short(found)}, allowed: {describe(schema, root)}")


def _at(schema: dict, root: dict, keys: Sequence[str | int], value: object) -> dict:
    """Return the schema of what stands at `keys`; of alternatives the one whose type the value has."""
    schema = _only(resolved(schema, root), root, value)
    if not keys:
        return schema
    key, *rest = keys
    inner = None if (found := get(value, [key])) is MISSING else found
    if isinstance(key, int):
        items = schema.get("prefixItems", [schema.get("items", {})])
        return _at(items[min(key, len(items) - 1)], root, rest, inner)
    others = next(iter(schema.get("patternProperties", {}).values()), schema.get("additionalProperties"))
    return _at(schema.get("properties", {}).get(key, others or {}), root, rest, inner)


def _only(schema: dict, root: dict, value: object) -> dict:
    kinds = {dict: "object", list: "array", tuple: "array", str: "string", int: "integer", float: "number"}
    kind = kinds.get(type(value))
    branches = [resolved(branch, root) for branch in schema.get("anyOf", schema.get("oneOf", []))]
    fitting = [branch for branch in branches if branch.get("type") == kind and _has_words_of(branch, value)]
    return fitting[0] if kind and len(fitting) == 1 else schema


def _has_words_of(schema: dict, value: object) -> bool:
    """Whether a mapping has the words that its schema fixes; those tell alternatives apart."""
    fixed = {key: inner["const"] for key, inner in schema.get("properties", {}).items() if "const" in inner}
    return not isinstance(value, dict) or all(value.get(key, word) == word for key, word in fixed.items())


def resolved(schema: dict, root: dict) -> dict:
    """Return what a schema refers to; itself where it refers to nothing."""
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    return schema


def _choices(schema: dict) -> list[str]:
    """Return the words that a schema of words alone allows."""
    if "enum" in schema or "const" in schema:
        return [str(word) for word in schema.get("enum", [schema.get("const")])]
    branches = schema.get("anyOf", [])
    words = [word for branch in branches for word in _choices(branch)]
    return [*words, "null"] if words and branches[-1].get("type") == "null" else []


def describe(schema: dict, root: dict) -> str:
    """What a schema allows, in words."""
    schema = resolved(schema, root)
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return ", or ".join(describe(branch, root) for branch in schema[several])
    if words := _choices(schema):
        return ", ".join(words)
    kind = schema.get("type", "string")
    if kind in ("integer", "number"):
        return f"{'an integer' if kind == 'integer' else 'a number'}{_bounds(schema)}"
    if kind == "array" and "prefixItems" in schema:
        return f"a list of two {_plural(describe(schema['prefixItems'][0], root))}"
    if kind == "array":
        different = "different " if schema.get("uniqueItems") else ""
        empty = "non-empty " if schema.get("minItems") else ""
        most = f", at most {schema['maxItems']}" if "maxItems" in schema else ""
        return f"a {empty}list of {different}{_plural(describe(schema['items'], root))}{most}"
    if kind == "object":
        return "a non-empty mapping" if schema.get("minProperties") else "a mapping"
    if kind == "string" and "pattern" in schema:
        return WORDS.get(schema["pattern"], f"text like {schema['pattern']}")
    return {"string": "text", "boolean": "true or false", "null": "null"}[kind]


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
