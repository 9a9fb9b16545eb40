"""What a submission's code asks of its own solution, and whether a wrong one could fail it.

Names that are bound in roundabout ways stay unknown; docs/grading.md says what that misses.
"""

import ast
import copy
from dataclasses import dataclass, field
from typing import Any

from projected_grpo.environment.attempts.tree import (
    COMPARED,
    DEPTH,
    FUNCTIONS,
    SCOPES,
    UNKNOWN,
    Function,
    Tree,
    called,
    names,
)

TESTED = ("Solution", "self", "cls")
RUNNERS = ("main", "testmod", "run_docstring_examples", "wasSuccessful")  # of unittest, pytest, doctest
RAISES = ("raises", "assertRaises", "assertRaisesRegex")
# Calls that say what kind of value there is, and never whether it is right.
KINDS = ("isinstance", "issubclass", "type", "callable", "hasattr", "id", "repr", "str")
BRANCHES = (ast.If, ast.While, ast.IfExp)
CATCH_ASSERTS = {"Exception", "BaseException", "AssertionError"}


def _runs_tests(node: ast.AST) -> bool:
    return called(node) in RUNNERS and isinstance(getattr(node, "func", None), ast.Attribute)


def _rejects(function: Function) -> bool:
    """Return whether a function fails on some of its arguments."""
    given = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    steps = list(ast.walk(function))
    tests = [each.test for each in steps if isinstance(each, ast.Assert)]
    tests += [each.test for each in steps if isinstance(each, ast.If) and any(map(_raises, ast.walk(each)))]
    return any(not given.isdisjoint(names(test)) for test in tests)


def _raises(node: ast.AST) -> bool:
    return isinstance(node, ast.Raise)


def _is_quiet(node: ast.AST) -> bool:
    """Return whether a failed assert in a block is forgotten by `suppress`."""
    items = node.items if isinstance(node, ast.With) else []
    quiet = [item.context_expr for item in items if called(item.context_expr) == "suppress"]
    return any(not CATCH_ASSERTS.isdisjoint(names(each)) for each in quiet)


@dataclass
class Code(Tree):
    """A tree with the checks in it.

    instances: names that hold the solution or a method of it; solution: those that hold what it returned, or anything
    made of that.
    """

    instances: set[str] = field(init=False, default_factory=set)
    solution: set[str] = field(init=False, default_factory=set)
    _open: list[ast.AST] = field(init=False, default_factory=list, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._follow()

    def _follow(self) -> None:
        """Find the names that hold instances of the solution, its methods, or what these returned."""
        for _ in range(4):
            known = len(self.instances) + len(self.solution)
            for node in self.of(ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr, ast.For):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                value = node.iter if isinstance(node, ast.For) else node.value
                names = {each.id for t in targets for each in ast.walk(t) if isinstance(each, ast.Name)}
                if value is None:
                    continue
                if self.asks(value) or self._under_check(node):
                    self.solution |= names
                elif self._names_subject(value):
                    self.instances |= names
            if len(self.instances) + len(self.solution) == known:
                return

    def _names_subject(self, node: ast.AST) -> bool:
        subjects = {*TESTED, *self.instances}
        return any(isinstance(each, ast.Name) and each.id in subjects for each in ast.walk(node))

    def _under_check(self, node: ast.AST) -> bool:
        return any(isinstance(each, ast.If) and self.asks(each.test) for each in self.around(node))

    def asks(self, node: ast.AST) -> bool:
        """Return whether an expression depends on what the solution returns."""
        return any(self._asks(each) for each in ast.walk(node))

    def _asks(self, node: ast.AST) -> bool:
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                return name in self.solution
            case ast.Call(func=ast.Name(id="map"), args=[function, *_]):
                return self._names_subject(function)
            case ast.Call(func=ast.Name(id=name)):
                return name in self.functions or name in self.instances
            case ast.Call(func=func):
                return self._names_subject(func)
        return False

    def can_fail(self, test: ast.AST, depth: int = DEPTH) -> bool:
        """Return whether a condition on the solution rejects some that are wrong.

        Not so what holds of any value of a kind, of a stub that returns 0 by a bound, or of anything.
        """
        if depth < 0 or self.constant(test) is not UNKNOWN or not self.asks(test):
            return False
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=inner) | ast.NamedExpr(value=inner):
                return self.can_fail(inner, depth - 1)
            case ast.BoolOp(op=ast.Or(), values=values):
                return all(self.can_fail(each, depth - 1) or not self.asks(each) for each in values)
            case ast.BoolOp(values=values):
                return any(self.can_fail(each, depth - 1) for each in values)
            case ast.Call() if called(test) in KINDS:
                return False
            case ast.Compare(left=left, ops=ops, comparators=others):
                sides = [left, *others]
                if all(isinstance(op, ast.Is | ast.IsNot) for op in ops) and any(
                    self.constant(side) is None for side in sides
                ):
                    return False
                if any(called(side) in KINDS for side in sides if self.asks(side)):
                    return False
                if len({ast.dump(side) for side in sides}) == 1:
                    return False
                if all(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in ops):
                    return self._of_stub(test) is not True
        return True

    def _of_stub(self, test: ast.Compare) -> Any:
        """Return what a comparison is where every call of the solution returns 0, or UNKNOWN."""
        code = self

        class Stub(ast.NodeTransformer):
            def visit(self, node: ast.AST) -> ast.AST:
                return ast.Constant(0) if code._asks(node) else self.generic_visit(node)

        sides = copy.deepcopy([test.left, *test.comparators])
        values = [self.constant(Stub().visit(side)) for side in sides]
        if any(value is UNKNOWN for value in values):
            return UNKNOWN
        pairs = zip(values, test.ops, values[1:], strict=False)
        return all(self._folded(COMPARED[type(op)], a, b) is True for a, op, b in pairs)

    def checks(self, node: ast.AST, leaves: bool = False) -> bool:
        """Return whether a statement, or what stands in it, rejects wrong solutions; functions in it do not count.

        leaves: a failed assert that ends in a return rejects them, too, as what stands behind is not reached.
        """
        waiting = [node]
        while waiting:
            each = waiting.pop()
            if isinstance(each, ast.Try) and self._swallows(each, leaves):
                waiting += [*each.orelse, *each.finalbody]
                continue
            if self._checks(each):
                return True
            if isinstance(each, ast.Assert | ast.Return) or _is_quiet(each):
                continue
            waiting += [child for child in ast.iter_child_nodes(each) if not isinstance(child, SCOPES)]
        return False

    def _checks(self, node: ast.AST) -> bool:
        match node:
            case ast.Assert(test=test) | ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                return self.can_fail(test) or any(map(_runs_tests, ast.walk(test)))
            case ast.Match(subject=subject):
                return self.asks(subject)
            case ast.With(items=items, body=body):
                raises = any(called(item.context_expr) in RAISES for item in items)
                return raises and any(map(self.asks, body))
            case ast.Compare():
                return self.can_fail(node)
            case ast.Return(value=value) if value is not None:
                return self.can_fail(value) or any(map(_runs_tests, ast.walk(value)))
            case ast.Call():
                name = called(node)
                if _runs_tests(node):
                    return True
                own, asked = self.functions.get(name, ()), any(map(self.asks, node.args))
                if asked and name.lower().startswith("assert") and "instance" not in name.lower():
                    return True
                return any(self._function_checks(each) or (asked and _rejects(each)) for each in own)
            case ast.For(target=ast.Name(id=name), iter=tests, body=body):
                # `for test in (test_1, test_2): test()`
                runs = any(called(each) == name for own in body for each in ast.walk(own))
                named = (each.id for each in ast.walk(tests) if runs and isinstance(each, ast.Name))
                functions = (own for each in named for own in self.functions.get(each, ()))
                return any(map(self._function_checks, functions))
        return False

    def _function_checks(self, function: Function) -> bool:
        """Return whether a helper checks the solution; recursion does not."""
        if function in self._open:
            return False
        self._open.append(function)
        try:
            return any(self.checks(statement) for statement in function.body)
        finally:
            self._open.pop()

    def _swallows(self, node: ast.Try, leaves: bool) -> bool:
        """Return whether a failed assert within is forgotten; leaves: not where a return follows on it."""
        for handler in node.handlers:
            named = [] if handler.type is None else ast.walk(handler.type)
            caught = {each.id for each in named if isinstance(each, ast.Name)}
            if handler.type is None or caught & CATCH_ASSERTS:
                steps = [each for own in handler.body for each in ast.walk(own)]
                return not any(
                    self._fails(each) or (leaves and isinstance(each, ast.Return)) for each in steps
                )
        return False

    def _fails(self, node: ast.AST) -> bool:
        match node:
            case ast.Raise():
                return True
            case ast.Return(value=value) | ast.Assign(value=value):
                found = self.constant(value)
                return found is False or found == 0
            case ast.Call(args=[status, *_]) if called(node) in ("exit", "_exit", "quit"):
                return self.constant(status) not in (0, None, False)
        return False

    def is_guarded(self, node: ast.AST, also_calls: bool = False, depth: int = 5) -> bool:
        """Return whether a wrong solution could keep a statement from being reached.

        A check stands around it or before it, in its function or at each place that calls this. also_calls: to have
        asked the solution anything is enough.
        """
        child, parent = node, self.parents.get(node)
        while parent is not None:
            if isinstance(parent, BRANCHES) and child is not parent.test and self.can_fail(parent.test):
                return True
            for block in ("body", "orelse", "finalbody"):
                own = getattr(parent, block, None)
                if isinstance(own, list) and child in own:
                    before = own[: own.index(child)]
                    if isinstance(parent, ast.Try | ast.For | ast.While) and block == "orelse":
                        before = [*parent.body, *before]
                    before = [each for each in before if not isinstance(each, SCOPES)]
                    if any(
                        self.checks(each, leaves=True) or (also_calls and self.asks(each)) for each in before
                    ):
                        return True
            if isinstance(parent, FUNCTIONS):
                name = getattr(parent, "name", None)
                places = [call for call in self.of(ast.Call) if called(call) == name] if name else []
                return bool(places and depth) and all(
                    self.is_guarded(call, also_calls, depth - 1) for call in places
                )
            child, parent = parent, self.parents.get(parent)
        return False
