"""Plain values as text. The untrusted side writes them, the trusted side compares them without believing a word.

JSON with tags, so that what Python tells apart stays apart: null, true, false, small integers and texts as they are;
`["i", hex]` other integers, `["f", hex]` floats, `["c", hex, hex]` complex, `["b", hex]` bytes, `["s", hex]` texts with
surrogates (in JSON a pair of them is the character that it joins to), and `["l", ...]` list, `["t", ...]` tuple,
`["S", ...]` set, `["F", ...]` frozenset, `["d", key, value, ...]` dict. `["x"]` is no plain value.
"""

import json
from json.encoder import encode_basestring_ascii as _quote
from typing import Any

DEPTH = 200  # nesting; deeper counts as no plain value
SMALL = 1 << 53

# A submission may replace builtins; what is used below was taken before any submission ran.
_type, _str, _int, _float, _bool, _bytes, _complex = type, str, int, float, bool, bytes, complex
_list, _tuple, _dict, _set, _frozenset = list, tuple, dict, set, frozenset
_hex, _float_hex, _bytes_hex, _repr = hex, float.hex, bytes.hex, int.__repr__
_items, _append, _join, _utf8, _unencodable = (
    dict.items,
    list.append,
    str.join,
    str.encode,
    UnicodeEncodeError,
)


class NotPlain(Exception):
    """The value holds something else than plain values."""


def encode(value: Any) -> str:
    """Return the text of `value`; `["x"]` unless it and all in it are exactly of the plain types."""
    out: list[str] = []
    try:
        _encode(value, out, 0)
    except NotPlain:
        return '["x"]'
    return _join("", out)


def _encode(value: Any, out: list[str], depth: int) -> None:
    kind = _type(value)
    if value is None:
        _append(out, "null")
    elif kind is _bool:
        _append(out, "true" if value else "false")
    elif kind is _int:
        _append(out, _repr(value) if -SMALL < value < SMALL else f'["i","{_hex(value)}"]')
    elif kind is _str:
        _append(out, _text(value))
    elif kind is _float:
        _append(out, f'["f","{_float_hex(value)}"]')
    elif kind is _list or kind is _tuple or kind is _set or kind is _frozenset:
        if depth > DEPTH:
            raise NotPlain
        _append(
            out, '["l"' if kind is _list else '["t"' if kind is _tuple else '["S"' if kind is _set else '["F"'
        )
        for item in value:
            _append(out, ",")
            _encode(item, out, depth + 1)
        _append(out, "]")
    elif kind is _dict:
        if depth > DEPTH:
            raise NotPlain
        _append(out, '["d"')
        for key, item in _items(value):
            _append(out, ",")
            _encode(key, out, depth + 1)
            _append(out, ",")
            _encode(item, out, depth + 1)
        _append(out, "]")
    elif kind is _bytes:
        _append(out, f'["b","{_bytes_hex(value)}"]')
    elif kind is _complex:
        _append(out, f'["c","{_float_hex(value.real)}","{_float_hex(value.imag)}"]')
    else:
        raise NotPlain


def _text(value: str) -> str:
    try:
        _utf8(value)
    except _unencodable:
        return f'["s","{_bytes_hex(_utf8(value, "utf-8", "surrogatepass"))}"]'
    return _quote(value)


def size_limit(expected: Any) -> int:
    """Return the length in characters that no text of a value equal to `expected` exceeds."""
    return 64 * len(encode(expected)) + 1024


def equals(text: bytes, expected: Any, limit: int) -> bool:
    """Whether the value that `text` spells equals `expected` as Python's `==` on plain values has it.

    text: from the untrusted side, anything at all; longer than `limit` bytes it is not even parsed.
    """
    if len(text) > limit:
        return False
    try:
        return _matches(json.loads(text), expected)
    except (ValueError, TypeError, IndexError, KeyError, RecursionError, OverflowError):
        return False


def _matches(node: Any, expected: Any) -> bool:
    """Compare along `expected`, so that a hostile text cannot make us build more than `expected` holds."""
    if not isinstance(node, list):
        return not isinstance(expected, list | tuple | set | frozenset | dict) and node == expected
    tag, items = node[0], node[1:]
    if tag == "l" or tag == "t":
        kind = list if tag == "l" else tuple
        return type(expected) is kind and len(items) == len(expected) and all(map(_matches, items, expected))
    if tag in ("S", "F"):
        if not isinstance(expected, set | frozenset) or len(items) > 4 * len(expected):
            return False
        values = [_value(item) for item in items]
        # Looked up among the expected ones first: a set of others could be made of one hash.
        return all(value in expected for value in values) and len(set(values)) == len(expected)
    if tag == "d":
        if type(expected) is not dict or len(items) != 2 * len(expected):
            return False
        keys = [_value(key) for key in items[::2]]
        return (
            all(key in expected for key in keys)
            and len(set(keys)) == len(expected)
            and all(_matches(value, expected[key]) for key, value in zip(keys, items[1::2], strict=True))
        )
    return not isinstance(expected, list | tuple | set | frozenset | dict) and _leaf(tag, items) == expected


def _leaf(tag: str, items: list) -> Any:
    if tag == "i":
        return int(items[0], 16)
    if tag == "f":
        return float.fromhex(items[0])
    if tag == "c":
        return complex(float.fromhex(items[0]), float.fromhex(items[1]))
    if tag == "b":
        return bytes.fromhex(items[0])
    if tag == "s":
        return bytes.fromhex(items[0]).decode("utf-8", "surrogatepass")
    raise ValueError("no plain value")


def _value(node: Any) -> Any:
    """Return the hashable value of a set's element or a dict's key."""
    if not isinstance(node, list):
        return node
    tag, items = node[0], node[1:]
    if tag == "t":
        return tuple(map(_value, items))
    if tag == "F":
        return frozenset(map(_value, items))
    return _leaf(tag, items)


def decode(text: bytes) -> Any:
    """Return the plain value of a short text from the child, for figures and messages. Raises ValueError."""
    node = json.loads(text)
    if isinstance(node, list):
        raise ValueError("a single value expected")
    return node
