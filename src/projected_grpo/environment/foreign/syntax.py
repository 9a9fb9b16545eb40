"""The code of a row read as a tree: the names that it uses, binds and defines, its imports, what it never judges."""

import ast
import builtins
import importlib

from projected_grpo.errors import UserError


class NoCheck(UserError):
    """A row has no check that can be read: the row is left out, its file is not."""


def parsed(text: str, where: str) -> ast.Module:
    """Return the tree of a check's text. Raises NoCheck where it is no Python."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NoCheck(f"{where}: the check is no valid Python ({error})") from error


def used_and_bound(texts: list[str], where: str) -> tuple[list[str], set[str]]:
    """Return the names that texts use, in order, and those that they bind or that Python has."""
    used: dict[str, None] = {}
    bound = set(dir(builtins))
    for text in texts:
        for node in ast.walk(parsed(text, where)):
            match node:
                case ast.ImportFrom(module=module, names=[ast.alias(name="*")]) if module in STARS:
                    bound |= vars(importlib.import_module(module)).keys()
                case ast.Import(names=names) | ast.ImportFrom(names=names):
                    bound |= {(alias.asname or alias.name).split(".")[0] for alias in names}
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                    bound.add(name)
                case ast.ExceptHandler(name=str(name)):
                    bound.add(name)
                case ast.Name(id=name, ctx=ast.Load()):
                    used.setdefault(name)
                case ast.Name(id=name):
                    bound.add(name)
    return list(used), bound


# Modules whose names a setup may take as they come; none of them does anything when it is imported.
STARS = (
    "typing", "string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics",
    "itertools", "functools", "operator", "io", "sys", "json", "builtins", "decimal", "fractions", "cmath",
)  # fmt: skip


def made_of(code: str | None) -> dict[str, type[ast.AST]]:
    """Return the names that a solution defines at its top, with the kind of node that each is; none if it has none."""
    found: dict[str, type[ast.AST]] = {}
    for node in _body(code or "") or ():
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AsyncFunctionDef(name=name):
                found[name] = type(node)
            case ast.Assign(targets=targets, value=value):
                names = (part for target in targets for part in ast.walk(target))
                found |= {part.id: type(value) for part in names if isinstance(part, ast.Name)}
    return found


def imports(text: str, of: set[str] | None = None) -> str:
    """Return the imports at the top of a text; of: those alone that give one of these names."""
    found = [node for node in _body(text) or () if isinstance(node, ast.Import | ast.ImportFrom)]
    given = [{(alias.asname or alias.name).split(".")[0] for alias in node.names} for node in found]
    return "\n".join(
        ast.unparse(node) for node, own in zip(found, given, strict=True) if of is None or own & of
    )


def given(prompt: str) -> str:
    """Return what a prompt gives as code, its head made a whole function; nothing for a prompt of prose."""
    whole = (prompt, f"{prompt.rstrip()}\n    pass\n")
    return next((text for text in whole if _body(text) is not None), "")


def _body(text: str) -> list[ast.stmt] | None:
    """Return the statements of a text; None where it is no Python."""
    try:
        return ast.parse(text).body
    except (SyntaxError, ValueError):
        return None


def idle(tree: ast.AST) -> str:
    """Return a comparison without `assert`, or an asserted tuple, which is always true; "" for none.

    Where an exception is awaited, a comparison may be what raises it.
    """
    match tree:
        case ast.With() | ast.Try() | ast.TryStar():
            return ""
        case ast.Expr(value=ast.Compare()) | ast.Assert(test=ast.Tuple(elts=[_, *_])):
            return ast.unparse(tree)
    return next(filter(None, map(idle, ast.iter_child_nodes(tree))), "")
