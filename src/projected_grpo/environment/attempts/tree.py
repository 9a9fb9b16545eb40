"""A submission's text as a syntax tree: what in it is constant, and what stands where. Nothing of it is run."""

import ast
import builtins
import operator
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

MAX_TEXT = 20_000  # characters; a longer text is read as none
MENDED = 8  # lines that are no Python are left out, so many at most
CHECKS = ("assert", "raise", "if", "return")
DEPTH = 40  # of an expression that is folded
LONGEST = 10_000  # characters of a folded text
UNKNOWN = object()
WIDE = re.compile(r"\d{6}")
PLAIN = ("bool", "int", "str", "abs", "len")  # functions of a constant that are folded, and methods of a text
OF_TEXT = ("upper", "lower", "title", "strip", "join", "format", "encode", "decode", "replace")
COMPARED = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
SCOPES = (*FUNCTIONS, ast.ClassDef)


def parse(text: str) -> ast.Module | None:
    """Return the tree of a text; lines at which it is no Python are taken for `pass`, those of a check for one that

    fails. None where that does not help.
    """
    if len(text) > MAX_TEXT:
        return None
    lines = text.split("\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(MENDED):
            try:
                return ast.parse("\n".join(lines))
            except SyntaxError as error:
                place = (error.lineno or 0) - 1
                line = lines[place].strip() if 0 <= place < len(lines) else ""
                if line in ("", "pass", "raise"):
                    return None
                blank = lines[place][: -len(lines[place].lstrip())]
                lines[place] = blank + ("raise" if line.startswith(CHECKS) else "pass")
            except (ValueError, RecursionError, MemoryError):
                return None
    return None


def called(node: ast.AST) -> str:
    """Return the last name of what a call calls: `write` of `open(...).write(...)`; nothing where it has none."""
    match node:
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return name
    return ""


def names(node: ast.AST) -> set[str]:
    """Return the names and attributes that stand in a node."""
    found = (getattr(each, "attr", getattr(each, "id", None)) for each in ast.walk(node))
    return {name for name in found if name is not None}


def returned(function: ast.AST) -> list[ast.expr | None]:
    """Return what the returns in a function return."""
    return [each.value for each in ast.walk(function) if isinstance(each, ast.Return)]


def _is_wide(values: list[Any]) -> bool:
    """Return whether a text is formatted with a width that builds too long a text before it can be measured."""
    return isinstance(values[0], str | bytes) and bool(WIDE.search(repr(values)))


@dataclass
class Tree:
    """A tree, its constants, and what stands where.

    nodes: all of them, those of constant texts that are executed included; constants: names that are bound once, to a
    constant; functions: by name.
    """

    tree: ast.Module
    nodes: list[ast.AST] = field(init=False)
    parents: dict[ast.AST, ast.AST] = field(init=False)
    constants: dict[str, Any] = field(init=False, default_factory=dict)
    functions: dict[str, list[Function]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.nodes = list(ast.walk(self.tree))
        self._bind()
        for call in [call for call in self.of(ast.Call) if called(call) in ("exec", "eval", "compile")]:
            if not call.args:
                continue
            text = self.constant(call.args[0])
            if isinstance(text, str) and (tree := parse(text)) is not None:
                self.nodes += ast.walk(tree)
        self.parents = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}
        for node in self.of(ast.FunctionDef, ast.AsyncFunctionDef):
            self.functions.setdefault(node.name, []).append(node)

    def of(self, *kinds: type) -> Iterator[Any]:
        """Yield the nodes of some kinds."""
        return (node for node in self.nodes if isinstance(node, kinds))

    def _bind(self) -> None:
        bound: dict[str, list[ast.expr | None]] = {}
        for node in self.nodes:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    bound.setdefault(name, []).append(value)
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                    bound.setdefault(name, []).append(None)
        for name, values in bound.items():
            given = [value for value in values if value is not None]
            if len(given) == 1 and len(values) == 2:  # the assignment, and the name in it
                value = self.constant(given[0])
                if value is not UNKNOWN:
                    self.constants[name] = value

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield what a node stands in, the innermost first."""
        while (outer := self.parents.get(node)) is not None:
            yield (node := outer)

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield what a node stands in, up to its function."""
        return takewhile(lambda outer: not isinstance(outer, FUNCTIONS), self.above(node))

    def function_around(self, node: ast.AST) -> ast.AST | None:
        """Return the innermost function that a node stands in."""
        return next((outer for outer in self.above(node) if isinstance(outer, FUNCTIONS)), None)

    def class_around(self, node: ast.AST) -> ast.ClassDef | None:
        """Return the innermost class that a node stands in."""
        return next((outer for outer in self.above(node) if isinstance(outer, ast.ClassDef)), None)

    def is_solution(self, owner: ast.ClassDef | None) -> bool:
        """Return whether a class is Solution, or one that it inherits from."""
        if owner is None or owner.name == "Solution":
            return owner is not None
        bases = [base for own in self.of(ast.ClassDef) if own.name == "Solution" for base in own.bases]
        return any(isinstance(base, ast.Name) and base.id == owner.name for base in bases)

    # --- constants ---

    def constant(self, node: ast.AST | None, depth: int = DEPTH) -> Any:
        """Return the value that an expression has whatever happens, or UNKNOWN."""
        if depth < 0:
            return UNKNOWN

        def of(*nodes: ast.AST) -> list[Any]:
            return [self.constant(each, depth - 1) for each in nodes]

        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self.constants.get(name, UNKNOWN)
            case ast.JoinedStr(values=parts):
                texts = of(*(part.value if isinstance(part, ast.FormattedValue) else part for part in parts))
                return UNKNOWN if UNKNOWN in texts else "".join(map(str, texts))[:LONGEST]
            case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items):
                values = of(*items)
                return UNKNOWN if UNKNOWN in values else values
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                (value,) = of(operand)
                return UNKNOWN if value is UNKNOWN else not value
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                (value,) = of(operand)
                return -value if isinstance(value, int | float) else UNKNOWN
            case ast.BoolOp(op=op, values=values):
                decisive = isinstance(op, ast.Or)
                found = of(*values)
                ends = [value for value in found if value is not UNKNOWN and bool(value) is decisive]
                return ends[0] if ends else UNKNOWN if UNKNOWN in found else found[-1]
            case ast.IfExp(test=test, body=body, orelse=orelse):
                (value,) = of(test)
                return UNKNOWN if value is UNKNOWN else of(body if value else orelse)[0]
            case ast.NamedExpr(value=value):
                return of(value)[0]
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in COMPARED:
                return self._folded(COMPARED[type(op)], *of(left, right))
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
                added = operator.add if isinstance(op, ast.Add) else operator.sub
                return self._folded(added, *of(left, right))
            case ast.BinOp(left=ast.Constant() as left, op=ast.Mod(), right=right):
                values = of(left, right)
                return UNKNOWN if _is_wide(values) else self._folded(operator.mod, *values)
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, ast.Name(id="object")]):
                return True
            case ast.Call(func=ast.Name(id=name), args=[arg], keywords=[]) if name in PLAIN:
                return self._folded(getattr(builtins, name), *of(arg))
            case ast.Call(func=ast.Attribute(value=base, attr=name), args=args, keywords=[]) if (
                name in OF_TEXT
            ):
                values = of(base, *args)
                if name == "format" and _is_wide(values):
                    return UNKNOWN
                return self._folded(lambda base, *rest: getattr(base, name)(*rest), *values)
        return UNKNOWN

    @staticmethod
    def _folded(function: Any, *values: Any) -> Any:
        sizes = [len(value) for value in values if hasattr(value, "__len__")]
        if UNKNOWN in values or sum(sizes) > LONGEST:
            return UNKNOWN
        try:
            found = function(*values)
        except Exception:  # of any kind: it is no constant
            return UNKNOWN
        return found if not hasattr(found, "__len__") or len(found) <= LONGEST else UNKNOWN

    def is_true(self, node: ast.AST | None) -> bool:
        """Return whether an expression is a constant that counts as true."""
        value = self.constant(node)
        return value is not UNKNOWN and bool(value)

    def text(self, node: ast.AST | None, gaps: bool = False) -> str | None:
        """Return the text that an expression is, whatever happens; gaps: an f-string's values may be unknown."""
        value = self.constant(node)
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        if value is UNKNOWN and gaps and isinstance(node, ast.JoinedStr):
            value = "".join(self.text(part) or "{}" for part in node.values)[:LONGEST]
        return value if isinstance(value, str) else None
