"""Whether what a check asks of its candidate can depend on an answer.

If it cannot, all calls can be put to a submission at once, with the arguments that the row's own solution was seen to
get: they are inputs and no more. If it can (`decode(encode(x))`), those arguments, or how many there are, would hold
parts of the solution, and each call waits for the submission's own answers. Read off the text, and careful: in doubt it
can, which only takes longer.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeGuard

FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
UNREAD = {"eval", "exec", "getattr", "setattr", "globals", "locals", "vars", "compile"}
OPAQUE = ast.ClassDef | ast.Match | ast.Yield | ast.YieldFrom | ast.Await
EXITS = ast.Break | ast.Continue | ast.Return | ast.Raise
STOPS_EARLY = {"any", "next", "filter", "takewhile", "dropwhile"}
# They keep and change nothing of what they are given.
PURE = """
abs all bool dict divmod enumerate fabs float frozenset hash int isclose isinstance len list map max min pow print range
repr reversed round set sorted str sum tuple type zip
""".split()  # noqa: SIM905
PURE_MODULES = {"math", "cmath", "copy", "re", "itertools", "json", "string"}


def independent(texts: Iterable[str], candidates: set[str]) -> bool:
    """Return whether neither an argument of a call of `candidates` (names) nor whether it is made can hold an answer.

    Raises SyntaxError.
    """
    nodes = [node for text in texts for node in ast.walk(ast.parse(text))]
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    called = {id(node.func) for node in calls}
    # `check(candidate)`, as the last line of a check may be.
    starts = (node for node in calls if isinstance(node.func, ast.Name) and node.func.id == "check")
    called |= {id(part) for node in starts for part in node.args}
    functions = {node.name: node for node in nodes if isinstance(node, FUNCTIONS)}
    for node in nodes:
        if isinstance(node, OPAQUE) or (isinstance(node, ast.Name) and node.id in UNREAD):
            return False
        if isinstance(node, ast.Name) and node.id in candidates | functions.keys() and id(node) not in called:
            return False  # under another name it may be called anywhere
        if isinstance(node, ast.Lambda) and _holds(node.body, set(), candidates):
            return False
    holding = _holding(nodes, functions, candidates)
    asking = candidates | holding & functions.keys()  # a function that asks, too
    return not any(
        _steered(node, holding, asking)
        or (_asks(node, candidates) and any(_holds(given, holding, candidates) for given in _given(node)))
        for node in nodes
    )


def _asks(node: ast.AST, candidates: set[str]) -> TypeGuard[ast.Call]:
    """Whether a node calls a candidate: `f(...)` or `Solution().f(...)`."""
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name in candidates and name != "Solution"
        case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="Solution")))):
            return "Solution" in candidates
    return False


def _holds(node: ast.AST, holding: set[str], candidates: set[str]) -> bool:
    """Whether a node calls a candidate or names what may hold an answer, at any depth."""
    return any(
        _asks(part, candidates) or (isinstance(part, ast.Name) and part.id in holding)
        for part in ast.walk(node)
    )


def _steered(node: ast.AST, holding: set[str], asking: set[str]) -> bool:
    """Whether an answer decides here if there is a further call."""

    def holds(part: ast.AST) -> bool:
        return _holds(part, holding, asking)

    def goes_on(*parts: ast.AST) -> bool:
        return any(
            _asks(inner, asking) or isinstance(inner, EXITS) for part in parts for inner in ast.walk(part)
        )

    match node:
        case ast.While(test=test):
            return holds(test)
        case ast.If(test=test, body=body, orelse=orelse):
            return holds(test) and goes_on(*body, *orelse)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return holds(test) and goes_on(body, orelse)
        case ast.For(iter=source, body=body):
            return holds(source) and goes_on(*body)
        case ast.Try(body=body, handlers=handlers):
            return any(map(holds, body)) and goes_on(*handlers)
        case ast.BoolOp(values=values):
            return any(holds(value) and goes_on(*values[place:]) for place, value in enumerate(values, 1))
        case ast.Compare(comparators=[_, *later]):
            return goes_on(*later)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            first, *inner = node.generators
            deciding = [*(part for one in node.generators for part in one.ifs), *(one.iter for one in inner)]
            return any(map(holds, deciding)) or (holds(first.iter) and goes_on(node))
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in STOPS_EARLY and any(map(goes_on, _given(node)))
    return False


def _holding(nodes: list[ast.AST], functions: Mapping[str, FUNCTIONS], candidates: set[str]) -> set[str]:
    """Return the names that may hold an answer, or something chosen by one, anywhere in the text."""
    modules = {
        (alias.asname or alias.name).split(".")[0]
        for node in nodes
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    holding: set[str] = set()
    while True:
        found = set(holding)
        for node in nodes:
            for source, names in _flows(node, functions):
                if _holds(source, holding, candidates):
                    found |= names - modules
        if found == holding:
            return holding
        holding = found


def _flows(node: ast.AST, functions: Mapping[str, FUNCTIONS]) -> Iterator[tuple[ast.AST, set[str]]]:
    """Yield (what flows, the names that it flows to)."""
    match node:
        case ast.Assign(targets=targets, value=value):
            yield value, _names(targets)
        case (
            ast.AnnAssign(target=target, value=source)
            | ast.AugAssign(target=target, value=source)
            | ast.NamedExpr(target=target, value=source)
            | ast.comprehension(target=target, iter=source)
            | ast.withitem(optional_vars=target, context_expr=source)
        ) if target and source:
            yield source, _names([target])
        case (
            ast.For(target=target, iter=source, body=body)
            | ast.AsyncFor(target=target, iter=source, body=body)
        ):
            yield source, _names([target, *body])
        case ast.With(items=items, body=body):  # what is raised in it is kept by the context
            kept = _names(item.optional_vars for item in items if item.optional_vars)
            yield from ((part, kept) for part in body)
        case ast.If(test=test, body=body, orelse=orelse) | ast.While(test=test, body=body, orelse=orelse):
            yield test, _names([*body, *orelse])
        case ast.Try():
            yield node, _names(node.handlers) | {handler.name for handler in node.handlers if handler.name}
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield node, {name}
        case ast.Call(func=function):
            for given in _given(node):
                yield given, _reached(function, node, functions)


def _reached(function: ast.expr, call: ast.Call, functions: Mapping[str, FUNCTIONS]) -> set[str]:
    """Return the names that what is given in a call can get to."""
    match function:
        case ast.Name(id=name) if name in functions:
            return {part.arg for part in ast.walk(functions[name].args) if isinstance(part, ast.arg)}
        case ast.Name(id=name) if name in PURE:
            return set()
        case ast.Attribute(value=ast.Name(id=name)) if name in PURE_MODULES:
            return set()
    return _names([function]) | _passed(
        _given(call)
    )  # a method may keep it, a function put it into its neighbour


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _passed(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names of objects that are handed over themselves, not what a call makes of them."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif not isinstance(node, ast.Call):
            found |= _passed(ast.iter_child_nodes(node))
    return found


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    return {part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name)}
