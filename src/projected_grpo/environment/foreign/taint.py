"""Whether what a check asks of its candidate can depend on an answer.

If it cannot, all calls can be put to a submission at once, with the arguments that the row's own solution was seen to
get: they are inputs and no more. If it can (`decode(encode(x))`), those arguments would hold parts of the solution,
and each call waits for the submission's own answers. Read off the text, and careful: in doubt it can.
"""

import ast
from collections.abc import Iterable, Iterator

FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
UNREAD = {"eval", "exec", "getattr", "setattr", "globals", "locals", "vars", "compile"}


def independent(texts: Iterable[str], candidates: set[str]) -> bool:
    """Return whether no argument of a call of `candidates` (names) can hold an answer. Raises SyntaxError."""
    trees = [ast.parse(text) for text in texts]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    functions = {node.name for node in nodes if isinstance(node, FUNCTIONS)}
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in UNREAD:
            return False
        if isinstance(node, ast.Name) and node.id in candidates | functions and id(node) not in called:
            return False  # under another name it may be called anywhere
        if isinstance(node, ast.ClassDef | ast.Match):
            return False
        if isinstance(node, ast.Lambda) and _holds(node.body, set(), candidates):
            return False
    holding = _holding(nodes, candidates)
    return not any(
        _holds(argument, holding, candidates)
        for node in nodes
        if isinstance(node, ast.Call) and _asks(node, candidates)
        for argument in [*node.args, *(keyword.value for keyword in node.keywords)]
    )


def _asks(node: ast.AST, candidates: set[str]) -> bool:
    """Whether a node calls a candidate: `f(...)` or `Solution().f(...)`."""
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name in candidates and name != "Solution"
        case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="Solution")))):
            return "Solution" in candidates
    return False


def _holds(node: ast.AST, holding: set[str], candidates: set[str]) -> bool:
    return any(
        _asks(part, candidates) or (isinstance(part, ast.Name) and part.id in holding)
        for part in ast.walk(node)
    )


def _holding(nodes: list[ast.AST], candidates: set[str]) -> set[str]:
    """Return the names that may hold an answer, or something chosen by one, anywhere in the text."""
    functions = {node.name: node for node in nodes if isinstance(node, FUNCTIONS)}
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


def _flows(node: ast.AST, functions: dict[str, ast.AST]) -> Iterator[tuple[ast.AST, set[str]]]:
    """Yield (what flows, the names that it flows to)."""
    match node:
        case ast.Assign(targets=targets, value=value):
            yield value, _names(targets)
        case ast.AnnAssign(target=target, value=value) | ast.AugAssign(target=target, value=value) if value:
            yield value, _names([target])
        case ast.NamedExpr(target=target, value=value):
            yield value, _names([target])
        case (
            ast.For(target=target, iter=source, body=body)
            | ast.AsyncFor(target=target, iter=source, body=body)
        ):
            yield source, _names([target, *body])
        case ast.comprehension(target=target, iter=source):
            yield source, _names([target])
        case ast.withitem(context_expr=source, optional_vars=target) if target:
            yield source, _names([target])
        case ast.If(test=test, body=body, orelse=orelse) | ast.While(test=test, body=body, orelse=orelse):
            yield test, _names([*body, *orelse])
        case ast.Try():
            yield node, _names(node.handlers) | {handler.name for handler in node.handlers if handler.name}
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield node, {name}
        case ast.Call(func=function, args=args, keywords=keywords):
            given = [*args, *(keyword.value for keyword in keywords)]
            if isinstance(function, ast.Name) and function.id in functions:
                arguments = functions[function.id].args
                to = {part.arg for part in ast.walk(arguments) if isinstance(part, ast.arg)}
            elif isinstance(function, ast.Attribute):  # a method may keep what it is given
                to = _names([function])
            else:
                to = set()
            for argument in given:
                yield argument, to


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    return {part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name)}
