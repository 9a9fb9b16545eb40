"""What a script's result depends on, as one hash: every rule has `params: code=fingerprint(script)`.

The hash covers the syntax trees of a script and of every module of this package that it imports, directly or
through others, at the top or inside a function. Comments, docstrings, formatting and what is there for types alone
count for nothing. A package's `__init__` on the way to a module counts like any other, as Python loads it.
What is no import, but named in a string, counts too: a module (`"projected_grpo.sandbox.child"`), and a file
beside the module or in a plain folder there (`"published.csv"`, `"templates"`). Other packages are the lock's
business, not ours.
"""

import ast
import hashlib
import os
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from projected_grpo.errors import UserError

ROOT = Path(__file__).resolve().parent
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
TYPES = ("typing", "collections.abc")  # an import from these does nothing; what uses a name says so itself


class _Untyped(ast.NodeTransformer):
    """Takes out what is there for types alone; annotations of a class's fields stay, which dataclasses read."""

    fields = False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        node.returns = None
        return self._within(node, fields=False)

    visit_AsyncFunctionDef = visit_FunctionDef  # type: ignore[assignment]

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._within(node, fields=True)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if self.fields:
            return node
        return node.value and ast.Assign([node.target], node.value)

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return node.orelse if _is_for_types(node) else node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        return None if node.module in TYPES and not node.level else node

    def _within(self, node: ast.AST, fields: bool) -> ast.AST:
        before, self.fields = self.fields, fields
        self.generic_visit(node)
        self.fields = before
        return node


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


class _File(NamedTuple):
    """One parsed file: the hash of its tree, the (module, name or "") pairs it imports, its strings."""

    digest: str
    imports: tuple[tuple[str, str], ...]
    strings: tuple[str, ...]


def fingerprint(*scripts: str | os.PathLike, root: str | os.PathLike = ROOT) -> str:
    """Return 16 hex digits that change when the code behind `scripts` does; `root` is the package's folder.

    Raises UserError where a file is missing or no valid Python.
    """
    root, sources = Path(root).resolve(), [Path(script).resolve() for script in scripts]
    # Paths as seen from the package or the script: a clone elsewhere has the same fingerprint.
    named = sorted(
        {
            (os.path.relpath(path, root if path.is_relative_to(root) else source.parent), _digest(path))
            for source in sources
            for path in closure(source, root)
        }
    )
    return hashlib.sha256(repr(named).encode()).hexdigest()[:16]


def closure(script: Path, root: Path = ROOT) -> set[Path]:
    """Return the files whose content is in the fingerprint of `script`, itself among them."""
    found = {script}
    waiting, followed = [script], set()
    while waiting:
        path = waiting.pop()
        followed.add(path)
        for other in _needs(path, _version(path), root):
            found.add(other)
            if other.suffix == ".py" and other not in followed:
                waiting.append(other)
    return found


@cache
def _needs(path: Path, version: tuple[int, int], root: Path) -> list[Path]:
    """Return the files that `path` needs itself."""
    file = _parse(path, version)
    inside = path.is_relative_to(root)
    needs: list[Path] = []
    for module, name in file.imports:
        if module.startswith("."):
            if not inside:
                continue
            module = _absolute(module, path, root)
        found = _resolve(module, name, root)
        needs += found if found or inside else _beside(module, path)
    strings = "\n".join(file.strings)
    for dotted in re.findall(rf"\b{root.name}(?:\.\w+)+", strings):
        needs += _resolve(dotted, "", root)
    if inside:
        needs += [other for name, other in _neighbours(path.parent) if other != path and name in strings]
    return needs


def _resolve(module: str, name: str, root: Path) -> list[Path]:
    """Return the files that `import module` (name "") or `from module import name` loads from the package."""
    parts = module.split(".")
    if parts[0] != root.name:
        return []
    found: list[Path] = []
    folder = root.parent
    for depth, part in enumerate(parts, 1):
        folder /= part
        if folder.with_suffix(".py").is_file():
            return [*found, folder.with_suffix(".py")]
        last = depth == len(parts)
        submodule = last and bool(name) and ((folder / f"{name}.py").is_file() or (folder / name).is_dir())
        if (folder / "__init__.py").is_file():
            found.append(folder / "__init__.py")
        if submodule:
            found += _resolve(f"{module}.{name}", "", root)
    return found


def _absolute(module: str, path: Path, root: Path) -> str:
    """Return the full name of the relative `module` (leading dots) imported in `path`."""
    dots = len(module) - len(module.lstrip("."))
    package = [root.name, *path.parent.relative_to(root).parts]
    return ".".join([*package[: len(package) - dots + 1], module.lstrip(".")]).rstrip(".")


def _beside(module: str, path: Path) -> list[Path]:
    """Return the file of `module` where it is a neighbour of the script (Python finds those first)."""
    other = path.parent / f"{module.split('.')[0]}.py"
    return [other] if other.is_file() else []


@cache
def _neighbours(folder: Path) -> list[tuple[str, Path]]:
    """Return (name to look for, file) of what lies in `folder` or in plain folders (no packages) below it."""
    found = []
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith((".", "__")) or entry.suffix == ".pyc":
            continue
        if entry.is_file():
            found.append((entry.name, entry))
        elif not (entry / "__init__.py").exists():
            found += [(entry.name, file) for file in sorted(entry.rglob("*")) if file.is_file()]
    return found


def _version(path: Path) -> tuple[int, int]:
    try:
        stat = path.stat()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from error
    return stat.st_mtime_ns, stat.st_size


def _digest(path: Path) -> str:
    if path.suffix == ".py":
        return _parse(path, _version(path)).digest
    return hashlib.sha256(path.read_bytes()).hexdigest()


@cache
def _parse(path: Path, version: tuple[int, int]) -> _File:
    try:
        tree = ast.parse(path.read_bytes(), filename=str(path))
    except (SyntaxError, ValueError) as error:
        raise UserError(f"{path}:{getattr(error, 'lineno', 1)}: no valid Python ({error})") from error
    imports: list[tuple[str, str]] = []
    strings: list[str] = []
    _read(tree, imports, strings)
    tree = _Untyped().visit(tree)
    return _File(hashlib.sha256(ast.dump(tree).encode()).hexdigest(), tuple(imports), tuple(strings))


def _read(node: ast.AST, imports: list, strings: list) -> None:
    """Take the docstrings out of a tree and collect what it imports and its strings."""
    if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
        del node.body[0]
    if _is_for_types(node):
        imports, strings = [], []  # what is imported for types alone never runs
    if isinstance(node, ast.Import):
        imports += [(alias.name, "") for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        imports += [("." * node.level + (node.module or ""), alias.name) for alias in node.names]
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        strings.append(node.value)
    for child in ast.iter_child_nodes(node):
        _read(child, imports, strings)
