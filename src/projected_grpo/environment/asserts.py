"""Split a ground-truth assert into the call that a submission answers and the value that only we know.

All rows have the form `assert Solution().method(args) == literal`. The call's arguments go to the untrusted side, the
expected value never does. Anything that is not of this form, or not a plain value, is refused: an assert that has to be
*run* beside the submission could be fooled by it.
"""

import ast
import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

MAX_ITEMS = 10_000_000  # of a literal built by `[0] * n`
NAMES = {"inf": math.inf, "nan": math.nan}
BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
}
UNARY: dict[type, Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
}
CALLS = {"float": float, "set": set, "frozenset": frozenset, "tuple": tuple, "list": list}


class Test(NamedTuple):
    """One hidden test: `Solution().method(*args, **kwargs)` must equal `expected`."""

    args: tuple
    kwargs: dict[str, Any]
    expected: Any


def split(text: str, method: str) -> Test:
    """Return the parts of one assert. Raises ValueError that says what was found instead."""
    try:
        body = ast.parse(text.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"no valid Python ({error})") from error
    if len(body) != 1 or not isinstance(body[0], ast.Assert):
        raise ValueError("expected one assert statement")
    test = body[0].test
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)):
        raise ValueError("expected `Solution().method(arguments) == literal`")
    call: Any = test.left
    if not _is_call_of(call, method):
        raise ValueError(f"expected a call of Solution().{method} on the left of `==`")
    if any(keyword.arg is None for keyword in call.keywords):
        raise ValueError("`**` in the call cannot be split off")
    args = tuple(literal(arg) for arg in call.args)
    kwargs = {keyword.arg: literal(keyword.value) for keyword in call.keywords}
    return Test(args, kwargs, literal(test.comparators[0]))


def literal(node: ast.expr) -> Any:
    """Return the plain value that `node` spells. Raises ValueError for anything that would have to be run."""
    try:
        return _literal(node)
    except (TypeError, ArithmeticError, RecursionError, MemoryError) as error:
        raise ValueError(f"no plain literal ({error})") from error


def _literal(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=value) if not isinstance(value, type(...)):
            return value
        case ast.List(elts=items):
            return [_literal(item) for item in items]
        case ast.Tuple(elts=items):
            return tuple(_literal(item) for item in items)
        case ast.Set(elts=items):
            return {_literal(item) for item in items}
        case ast.Dict(keys=keys, values=values) if None not in keys:
            return {_literal(key): _literal(value) for key, value in zip(keys, values, strict=True)}  # type: ignore[arg-type]
        case ast.Name(id=name) if name in NAMES:
            return NAMES[name]
        case ast.Attribute(value=ast.Name(id="math"), attr=name) if name in NAMES:
            return NAMES[name]
        case ast.UnaryOp(op=op, operand=operand) if type(op) in UNARY:
            return UNARY[type(op)](_literal(operand))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in BINARY:
            return _binary(type(op), _literal(left), _literal(right))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in CALLS and len(args) <= 1:
            return CALLS[name](*map(_literal, args))
    raise ValueError(f"`{ast.unparse(node)[:60]}` is no plain literal")


def _binary(op: type, left: Any, right: Any) -> Any:
    """Arithmetic of literals such as `10**9 + 7` or `[0] * 5`, with bounded results."""
    if op is ast.Pow and not (abs(left) <= 1 << 64 and abs(right) <= 4096):
        raise ValueError("a power in a literal is too large")
    if op is ast.Mult:
        sizes = [len(side) for side in (left, right) if hasattr(side, "__len__")]
        counts = [side for side in (left, right) if isinstance(side, int)]
        if sizes and counts and sizes[0] * counts[0] > MAX_ITEMS:
            raise ValueError("a repeated literal is too long")
    return BINARY[op](left, right)


def _is_call_of(node: ast.expr, method: str) -> bool:
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Call(func=ast.Name(id="Solution"), args=[], keywords=[]), attr=name)
        ):
            return name == method
    return False
