"""Why an answer failed, in a line for people. No verdict depends on it, and no run keeps it."""

from typing import Any

from projected_grpo.environment.completion import FENCE, answer_of
from projected_grpo.sandbox.exchange import NotPlain, read
from projected_grpo.sandbox.values import equals

LONGEST = 200  # characters of a value that is shown


def no_fence(completion: str) -> str:
    """Return why a completion has no code."""
    if FENCE.search(completion):
        return "no ```python fence: the only one stands in thinking"
    if "```" in answer_of(completion):
        return "no ```python fence: one of another word, or of none, does not count"
    return "no ```python fence" if completion.strip() else "no ```python fence: the completion is empty"


def raised(reason: tuple[str, str, int | None] | None) -> str | None:
    """Return an exception as `Type: message (line n)`; None where none is known."""
    if reason is None:
        return None
    kind, message, line = reason
    return (f"{kind}: {message}" if message else kind) + (f" (line {line})" if line else "")


def failed_test(
    seen: dict[str, Any], method: str, tests: tuple, expected: list[tuple[Any, int]]
) -> str | None:
    """Return the first test that did not give what it should: with the value, or with what was raised."""
    for index, frame in enumerate(seen["frames"][2:]):
        if index >= len(tests) or frame[:1] == b"d":
            break
        value, limit = expected[index]
        if frame[:1] == b"v" and equals(frame[1:], value, limit):
            continue
        args, kwargs, _ = tests[index]
        shown = ", ".join([*map(repr, args), *(f"{key}={item!r}" for key, item in kwargs.items())])
        call = f"test {index + 1} of {len(tests)}: {method}({short(shown)})"
        if frame[:1] != b"v":
            return f"{raised(seen['reason']) or 'an exception'}; {call}"
        return f"{call} gave {_value(frame[1:])}, not {short(repr(value))}"
    return raised(seen["reason"])


def _value(text: bytes) -> str:
    if len(text) > 8 * LONGEST:
        return "a long value"
    try:
        return short(repr(read(text.decode("ascii"))))
    except NotPlain:
        return "an object that is no plain value"
    except (ValueError, TypeError, LookupError, RecursionError, OverflowError):
        return "what is no value"


def short(text: str) -> str:
    """Return at most LONGEST characters of `text`."""
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
