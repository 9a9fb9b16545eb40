"""Reading a model's answer: a JSON object anywhere in its text, or the short form `2: it tricks the grader`.

What it thinks before (`<think> ... </think>`) is no answer. What is unusable has a reason in one word, to count by.
"""

import json
import re
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from projected_grpo.environment.completion import answer_of

MISTAKES = ("credit for intentions", "inflated score", "ignoring evidence", "inconsistent scale")
LINE = re.compile(r"(-?\d{1,3}(?:\.\d+)?): (.+)")
REASONS = {  # pydantic's types of errors; ours are reasons already
    "float_type": "wrong_type",
    "string_type": "wrong_type",
    "finite_number": "not_finite",
}


class Unusable(Exception):
    """An answer that cannot be used; `reason` is one word to count by."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


def _some(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("empty", "no text")
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise PydanticCustomError("bad_text", "lone surrogates")
    return text.strip()


def _mistake(text: str) -> str:
    text = text.lower().replace("_", " ").replace("-", " ")
    if text not in MISTAKES:
        raise PydanticCustomError("unknown_value", "no kind of mistake")
    return text


Words = Annotated[str, AfterValidator(_some)]
Mistake = Annotated[Words, AfterValidator(_mistake), Field(json_schema_extra={"enum": list(MISTAKES)})]


class Answer(BaseModel):
    model_config = ConfigDict(
        strict=True, allow_inf_nan=False, json_schema_extra={"additionalProperties": False}
    )


class Evaluation(Answer):
    phi_after: float
    reasoning: Words


class WrongEvaluation(Answer):
    wrong_phi_after: float
    wrong_reasoning: Words
    mistake_type: Mistake


Form = TypeVar("Form", bound=Answer)


def read(text: str, form: type[Form]) -> Form:
    """The first object of the answer in `text` that has all keys of `form`.

    Raises Unusable: `empty`, `no_json`, `missing_key`, `wrong_type`, `not_finite`, `unknown_value`, `bad_text`.
    """
    text = answer_of(text)
    found = _objects(text)
    complete = [value for value in found if value.keys() >= form.model_fields.keys()]
    if not complete:
        raise Unusable("missing_key" if found else "no_json" if text.strip() else "empty")
    return _checked(complete[0], form)


def read_line(text: str, form: type[Form]) -> Form:
    """As `read`, for the short form; in a wrong evaluation the kind of mistake is the reasoning.

    Raises Unusable: `empty`, `no_line` or `unknown_value`.
    """
    text = answer_of(text).strip()
    match = LINE.fullmatch(text)
    if not match:
        raise Unusable("no_line" if text else "empty")
    number, *words = form.model_fields
    return _checked({number: float(match[1]), **dict.fromkeys(words, match[2])}, form)


def said(error: ValidationError) -> str:
    """The first of pydantic's complaints on one line, with the place that it is about."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}" if place else first["msg"]


def _checked(values: dict, form: type[Form]) -> Form:
    try:
        return form.model_validate(values)
    except ValidationError as error:
        kind = error.errors(include_url=False, include_input=False)[0]["type"]
        raise Unusable(REASONS.get(kind, kind)) from None


def _objects(text: str) -> list[dict]:
    """Every outermost JSON object in `text`, in order."""
    decoder, objects, at = json.JSONDecoder(), [], text.find("{")
    for _ in range(100):  # a text full of stray braces must not cost quadratic time
        if at < 0:
            break
        try:
            value, end = decoder.raw_decode(text, at)
            objects.append(value)
        except (ValueError, RecursionError):
            end = at + 1
        at = text.find("{", end)
    return objects
