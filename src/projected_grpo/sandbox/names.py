"""What can be told from names alone, before anything runs: whether code can have effects, and needs its setup.

Code whose every name is in INERT (or granted by the caller) can compute and return values and do nothing else: it
cannot import, print, open, set an attribute, define a special method, raise or exit. Names are read off the compiled
code, where attributes, globals, imports and definitions all appear; what is no name there is a local value.
"""

import ast
import sys
import types

_ATTRIBUTES = (
    "append extend insert pop remove reverse sort count index copy clear get keys values items add discard"
)
_TEXT = "split strip join lower upper replace startswith endswith find isdigit isalpha"
_BUILTINS = (
    "abs all any bool chr dict divmod enumerate filter float frozenset int len list map max min ord pow range "
    "reversed round set sorted str sum tuple zip"
)
INERT = frozenset(f"{_ATTRIBUTES} {_TEXT} {_BUILTINS} __name__ __module__ __qualname__ Solution".split())


def used_by(code: types.CodeType) -> set[str]:
    """Return every name in `code` and in all code inside it, local variables left out."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= used_by(constant)
    return found


def bound_by(setup: ast.Module) -> frozenset[str] | None:
    """Return the names that `setup` binds; None where it is more than imports and definitions."""
    bound: set[str] = set()
    for statement in setup.body:
        match statement:
            case ast.Import(names=aliases):
                bound |= {(alias.asname or alias.name).split(".")[0] for alias in aliases}
            case ast.ImportFrom(module=module, names=[ast.alias(name="*")]) if module in sys.modules:
                exported = sys.modules[module]
                bound |= set(getattr(exported, "__all__", None) or (n for n in vars(exported) if n[0] != "_"))
            case ast.ImportFrom(names=aliases) if aliases[0].name != "*":
                bound |= {alias.asname or alias.name for alias in aliases}
            case ast.FunctionDef(name=name, decorator_list=[]) | ast.ClassDef(name=name, decorator_list=[]):
                bound.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]):
                bound.add(name)
            case _:
                return None
    return frozenset(bound)
