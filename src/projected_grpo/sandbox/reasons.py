"""Why a submission failed, for people: exception type, message and line. No verdict depends on a word of it.

`explain` runs in the check and runs no submitted code: a message is told only where its parts are plain values.
"""

import json
from types import TracebackType

from projected_grpo.sandbox.values import encode

Reason = tuple[str, str, int | None]  # type, message, line of the submission
LONGEST = 300  # characters of a message
SUBMISSION = "<submission>"  # file name of submitted code
_type_name = type.__dict__["__name__"].__get__
_args, _traceback = BaseException.args.__get__, BaseException.__traceback__.__get__  # type: ignore[attr-defined, union-attr]
_PLAIN = (str, int, float, bool, type(None))


def explain(word: str, error: BaseException) -> str:
    """Return the text of a frame: `word`, and where it can be told on a line below it why `error` was raised."""
    try:
        return f"{word}\n{encode((_type_name(type(error)), message_of(error), line_of(error)))}"
    except Exception:
        return word


def message_of(error: BaseException) -> str:
    args = _args(error)
    if issubclass(type(error), SyntaxError):
        args = args[:1]
    parts = [str(part) if type(part) is str else repr(part) for part in args if type(part) in _PLAIN]
    return ", ".join(parts)[:LONGEST]


def line_of(error: BaseException) -> int | None:
    if issubclass(type(error), SyntaxError):
        found = SyntaxError.lineno.__get__(error)  # type: ignore[union-attr]
        return found if type(found) is int else None
    line, step = None, _traceback(error)
    while step is not None:
        if step.tb_frame.f_code.co_filename == SUBMISSION:
            line = step.tb_lineno
        step = TracebackType.tb_next.__get__(step)  # type: ignore[union-attr]
    return line


def read(frames: list[bytes]) -> Reason | None:
    """Return the reason in the first frame that has one, of what an untrusted side reported; None where none has."""
    for frame in frames:
        _, _, text = frame.partition(b"\n")
        if frame[:1] in (b"s", b"e", b"r") and 0 < len(text) < 20 * LONGEST:
            try:
                found = json.loads(text)
            except (ValueError, RecursionError):
                return None
            match found:
                case ["t", str(kind), str(message), int() | None as line]:
                    return kind, message, line
            return None
    return None
