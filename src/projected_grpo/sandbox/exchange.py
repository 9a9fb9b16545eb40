"""Values by copy: how an argument or an answer gets from one process to another.

Plain values stay as they are. What Python's own containers and numbers hold beside them becomes a tuple that opens with
a mark; a subclass becomes what it is a kind of. Everything else is no value: `pack` refuses it. The file stands alone,
for it also runs where nothing of this project can be imported (environment/foreign/check.py).
"""

import datetime
import fractions
import itertools
import json
from collections import deque
from decimal import Decimal
from typing import Any

MARK = "\0value:"
MOST = 1_000_000  # items taken from an iterator
LEAVES = {type(None), bool, int, float, complex, str, bytes}
# A subclass is taken for the first of these that it is a kind of.
KINDS = ((int, int.__index__), (float, float.__float__), (complex, complex.__complex__), (str, str.__str__),
         (bytes, lambda value: bytes.join(b"", (value,))))  # fmt: skip


MAKES = {
    "deque": deque,
    "bytearray": bytearray,
    "range": range,
    "Fraction": fractions.Fraction,
    "Decimal": Decimal,
    "timedelta": datetime.timedelta,
    "date": datetime.date,
    "datetime": datetime.datetime,
}


class NotPlain(TypeError):
    """The value holds something that cannot be copied; the message names its type."""


def pack(value: Any) -> Any:
    """Return plain values that `unpack` makes an equal of `value` from. Raises NotPlain, RecursionError."""
    base: Any
    plain: Any
    kind = type(value)
    if kind in LEAVES:
        return value
    for base, plain in KINDS:
        if isinstance(value, base):
            return plain(value)
    for base in (list, tuple, set, frozenset):
        if isinstance(value, base):
            return base(map(pack, base.__iter__(value)))
    if isinstance(value, dict):
        return {pack(key): pack(item) for key, item in dict.items(value)}
    if kind is deque:
        return (MARK + "deque", [pack(item) for item in value])
    if kind is bytearray:
        return (MARK + "bytearray", bytes(value))
    if kind is range:
        return (MARK + "range", value.start, value.stop, value.step)
    if kind is fractions.Fraction:
        return (MARK + "Fraction", value.numerator, value.denominator)
    if kind is Decimal:
        return (MARK + "Decimal", str(value))
    if kind is datetime.timedelta:
        return (MARK + "timedelta", value.days, value.seconds, value.microseconds)
    if kind is datetime.date:
        return (MARK + "date", value.year, value.month, value.day)
    if kind is datetime.datetime and value.tzinfo is None:
        return (MARK + "datetime", *value.timetuple()[:6], value.microsecond)
    if kind is type({}.keys()):
        return {pack(key) for key in value}
    if hasattr(kind, "__next__") or kind is type({}.values()) or kind is type({}.items()):
        return (MARK + "iterator", [pack(item) for item in itertools.islice(iter(value), MOST)])
    raise NotPlain(kind.__name__)


def unpack(value: Any) -> Any:
    """Return the value that `pack` was given."""
    kind = type(value)
    if kind is tuple and value and type(value[0]) is str and value[0].startswith(MARK):
        name, *parts = value
        if name == MARK + "iterator":
            return iter(unpack(parts[0]))
        return MAKES[name.removeprefix(MARK)](*map(unpack, parts))
    if kind in (list, tuple, set, frozenset):
        return kind(map(unpack, value))
    if kind is dict:
        return {unpack(key): unpack(item) for key, item in value.items()}
    return value


def read(text: str) -> Any:
    """Return the plain value that a text of `values.encode` spells; made of JSON, so safe on any text.

    Raises NotPlain on the text of no plain value, ValueError and the like on what `encode` does not write.
    """
    return _plain(json.loads(text))


def _plain(node: Any) -> Any:
    if not isinstance(node, list):
        return node
    match node:
        case ["x"]:
            raise NotPlain("object")
        case ["i", digits]:
            return int(digits, 16)
        case ["f", number]:
            return float.fromhex(number)
        case ["c", real, imaginary]:
            return complex(float.fromhex(real), float.fromhex(imaginary))
        case ["b", digits]:
            return bytes.fromhex(digits)
        case ["s", digits]:
            return bytes.fromhex(digits).decode("utf-8", "surrogatepass")
        case ["d", *items]:
            items = list(map(_plain, items))
            return dict(zip(items[::2], items[1::2], strict=True))
        case [tag, *items]:
            return {"l": list, "t": tuple, "S": set, "F": frozenset}[tag](map(_plain, items))
    raise ValueError("an empty list")
