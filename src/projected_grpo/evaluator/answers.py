"""Reading an LLM's answer: a JSON object anywhere in the text, checked key by key; what is unusable has a
reason.
"""

import json
import math
import re
from typing import Any

MISTAKES = ("credit for intentions", "inflated score", "ignoring evidence", "inconsistent scale")
WRONG_SCHEMA = {
    "type": "object",
    "properties": {
        "wrong_phi_after": {"type": "number"},
        "wrong_reasoning": {"type": "string"},
        "mistake_type": {"type": "string", "enum": list(MISTAKES)},
    },
    "required": ["wrong_phi_after", "wrong_reasoning", "mistake_type"],
    "additionalProperties": False,
}
EVALUATION_SCHEMA = {
    "type": "object",
    "properties": {"phi_after": {"type": "number"}, "reasoning": {"type": "string"}},
    "required": ["phi_after", "reasoning"],
    "additionalProperties": False,
}


# The short form of the same answers: `2: it tricks the grader`, `9: inflated score`.
LINE = re.compile(r"(-?\d{1,3}(?:\.\d+)?): (.+)")


class Unusable(Exception):
    """An answer that cannot be used; `reason` is one word to count by."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


def read(text: str, schema: dict) -> dict[str, Any]:
    """The object of `schema` in `text`; numbers come back as floats, mistake types in the schema's spelling.

    Raises Unusable with the reason `empty`, `no_json`, `missing_key`, `wrong_type`, `not_finite`,
    `unknown_value` or `bad_text`.
    """
    if not text.strip():
        raise Unusable("empty")
    found = _objects(text)
    if not found:
        raise Unusable("no_json")
    required = schema["required"]
    complete = [value for value in found if all(key in value for key in required)]
    if not complete:
        raise Unusable("missing_key")
    return {key: _checked(complete[0][key], schema["properties"][key]) for key in required}


def read_line(text: str, schema: dict) -> dict[str, Any]:
    """As `read`, for the short form `score: reasoning`; in a wrong evaluation the kind of mistake is the
    reasoning.

    Raises Unusable with the reason `empty`, `no_line` or `unknown_value`.
    """
    if not text.strip():
        raise Unusable("empty")
    match = LINE.fullmatch(text.strip())
    if not match:
        raise Unusable("no_line")
    number, *words = schema["required"]
    values = {number: float(match[1]), **dict.fromkeys(words, match[2])}
    return {key: _checked(value, schema["properties"][key]) for key, value in values.items()}


def _checked(value: Any, rule: dict) -> Any:
    if rule["type"] == "number":
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Unusable("wrong_type")
        try:
            value = float(value)
        except OverflowError:
            raise Unusable("not_finite") from None
        if not math.isfinite(value):
            raise Unusable("not_finite")
        return value
    if not isinstance(value, str):
        raise Unusable("wrong_type")
    value = value.strip()
    if not value:
        raise Unusable("empty")
    if any("\ud800" <= c <= "\udfff" for c in value):
        raise Unusable("bad_text")
    if "enum" in rule:
        value = value.lower().replace("_", " ").replace("-", " ")
        if value not in rule["enum"]:
            raise Unusable("unknown_value")
    return value


def _objects(text: str) -> list[dict]:
    """Every outermost JSON object in `text`, in order."""
    decoder = json.JSONDecoder()
    objects, at, tries = [], text.find("{"), 0
    while at >= 0 and tries < 100:  # a text full of stray braces must not cost quadratic time
        tries += 1
        try:
            value, end = decoder.raw_decode(text, at)
            objects.append(value)
        except (ValueError, RecursionError):
            end = at + 1
        at = text.find("{", end)
    return [value for value in objects if isinstance(value, dict)]
