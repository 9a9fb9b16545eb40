"""Rows whose check is Python: HumanEval, MBPP, and rows of the LeetCode schema with asserts of any form.

HumanEval   task_id, prompt (imports, helpers, the function's head), entry_point, canonical_solution (the rest of it),
            test (a function `check(candidate)`); rows of LeetCodeDataset, whose entry_point is `Solution().name`
MBPP        task_id, text or prompt, code (a solution), test_list and challenge_test_list (asserts), test_imports,
            test_setup_code
LeetCode    as in problems.py, `gt_answer` asserts of any form, of `Solution().name` or of functions
"""

import ast
import os
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from projected_grpo.environment.foreign import syntax
from projected_grpo.environment.foreign.syntax import NoCheck
from projected_grpo.environment.levers import lever_of
from projected_grpo.environment.problem import LEETCODE, Problem
from projected_grpo.environment.problems import messages_of, optional, parse_problem
from projected_grpo.errors import UserError
from projected_grpo.files import numbered_rows

FORMATS = ("leetcode", "humaneval", "mbpp")
RUNS_TEXT = {"eval", "exec", "compile", "__import__", "pickle", "marshal"}  # called, or whose functions are
CALLED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Name, ast.Attribute, ast.Call)


@dataclass(frozen=True)
class ForeignProblem:
    """One row. problem: what the submission's side needs, without tests.

    names: what is called, `f` or `Solution.f`, the candidate first; before: texts that run before the check; check: a
    text with `check(candidate)`, or ""; asserts: texts, each for itself; head: what an answer that only goes on with
    the function goes on from; own: the row's solution, whole; unjudged: why its check cannot be run apart from the
    answer, or "".
    """

    problem: Problem
    names: tuple[str, ...]
    before: tuple[str, ...] = ()
    check: str = ""
    asserts: tuple[str, ...] = ()
    head: str = ""
    own: str | None = None
    unjudged: str = ""

    @property
    def id(self) -> Any:
        return self.problem.id

    @property
    def is_method(self) -> bool:
        """Return whether a method of `class Solution` is called, and no function."""
        return self.names[0].startswith("Solution.")

    def whole(self, code: str) -> str:
        """Return `code`, behind the prompt's head where it is no more than the rest of the function."""
        first = next((line for line in code.split("\n") if line.strip()), "")
        return self.head + code if self.head and first[:1].isspace() else code


def format_of(row: dict[str, Any]) -> str:
    """Return the format that a row has keys of; those that it lacks are named where it is read."""
    if "gt_answer" in row:
        return "leetcode"
    if row.keys() & {"test_list", "code"}:
        return "mbpp"
    return "humaneval" if row.keys() & {"entry_point", "test"} else "leetcode"


def parse_humaneval(row: dict[str, Any], where: str) -> ForeignProblem:
    """Return the problem of a HumanEval row. Raises UserError that opens with `where`."""
    prompt, name, test = (_text(row, key, where) for key in ("prompt", "entry_point", "test"))
    bare = name.removeprefix("Solution().")
    if not bare.isidentifier():
        raise UserError(
            f"{where}: key 'entry_point' must be a function's name or Solution().name, not {name!r}"
        )
    given = syntax.given(prompt)
    solution = optional(row, "canonical_solution", str, where) or optional(row, "completion", str, where)
    problem = Problem(_id(row, where), messages_of(prompt, where), bare, given)
    head = prompt if prompt.endswith("\n") else prompt + "\n"
    called = (name.replace("Solution().", "Solution."),)
    made = ForeignProblem(problem, called, (given,) if given else (), check=test, head=head)
    return _finished(made, made.whole(solution) if solution else None, where)


def parse_mbpp(row: dict[str, Any], where: str) -> ForeignProblem:
    """Return the problem of an MBPP row. Raises UserError that opens with `where`."""
    text = optional(row, "text", str, where) or optional(row, "prompt", str, where) or ""
    asserts = _texts(row, "test_list", where) + _texts(row, "challenge_test_list", where)
    if not asserts:
        raise NoCheck(f"{where}: key 'test_list' must be a list of asserts, found none")
    imports = "\n".join(_texts(row, "test_imports", where))
    setup = optional(row, "test_setup_code", str, where) or ""
    code = optional(row, "code", str, where) or optional(row, "canonical_solution", str, where)
    used, bound = syntax.used_and_bound([imports, setup, *asserts], where)
    theirs = syntax.imports(
        code or "", {name for name in used if name not in bound}
    )  # asserts may use the solution's
    before = tuple(part for part in (imports, setup, theirs) if part.strip())
    names = _methods(asserts) or _called(asserts, [*before], code, None, where)
    if not names:
        raise NoCheck(f"{where}: key 'test_list' calls no function of a submission")
    messages, bare = messages_of(text, where) if text else (), names[0].removeprefix("Solution.")
    problem = Problem(_id(row, where), messages, bare, imports + "\n" + syntax.imports(setup))
    return _finished(ForeignProblem(problem, names, before, asserts=tuple(asserts)), code, where)


def parse_asserts(row: dict[str, Any], where: str) -> ForeignProblem:
    """Return the problem of a row of the LeetCode schema whose asserts are no `Solution().method(...) == literal`."""
    asserts = _texts(row, "gt_answer", where)
    setup = optional(row, "setup_code", str, where)
    setup = LEETCODE if setup is None else setup
    code = optional(row, "canonical_solution", str, where) or None
    if any(re.search(r"\bSolution\b", text) for text in asserts):
        names = _methods(asserts)
        used, bound = syntax.used_and_bound([setup, *asserts], where)
        if unknown := [name for name in used if name not in bound and name != "Solution"]:
            raise NoCheck(f"{where}: key 'gt_answer' uses {unknown[0]}, which nothing defines")
    else:
        names = _called(asserts, [setup], code, row.get("func_name"), where)
    if not names:
        raise NoCheck(
            f"{where}: key 'gt_answer' calls no function of a submission and no method of Solution()"
        )
    messages = messages_of(row["prompt"], where) if row.get("prompt") is not None else ()
    problem = Problem(_id(row, where), messages, names[0].removeprefix("Solution."), setup, canonical=code)
    return _finished(ForeignProblem(problem, names, (setup,), asserts=tuple(asserts)), code, where)


def _methods(asserts: list[str]) -> tuple[str, ...]:
    """Return the methods of a class Solution that asserts call, in order."""
    found = (name for text in asserts for name in re.findall(r"\bSolution\(\)\.(\w+)", text))
    return tuple(dict.fromkeys(f"Solution.{name}" for name in found))


def wants_function(row: dict[str, Any]) -> bool:
    """Return whether a row of the LeetCode schema asks for a function: its asserts call it, and no Solution()."""
    asserts = row.get("gt_answer")
    if not isinstance(asserts, list) or not asserts:
        return False
    return not any(isinstance(text, str) and re.search(r"\bSolution\b", text) for text in asserts)


def _finished(made: ForeignProblem, own: str | None, where: str) -> ForeignProblem:
    """Return the row with its own solution, and with why it cannot be judged if that can be told from its text."""
    before, check = (
        [syntax.parsed(text, where) for text in texts] for texts in (made.before, (made.check, *made.asserts))
    )
    unjudged = ""
    for node in (node for tree in (*before, *check) for node in ast.walk(tree)):
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(value=ast.Name(id=name))):
                if name in RUNS_TEXT:
                    unjudged = f"its check uses {name}, which could run what a submission returns"
    for idle in filter(None, map(syntax.idle, check)):
        unjudged = f"its check has `{idle}`, which no answer can fail"
    for name, kind in syntax.made_of(own).items():
        if name in made.names and kind is ast.ClassDef:
            unjudged = (
                f"its check makes objects of {name}, a class of the answer, and objects cannot be copied"
            )
        elif name in made.names and not issubclass(kind, CALLED):
            unjudged = f"its check reads {name}, a value of the answer and no function"
    problem = made.problem
    if not made.is_method:  # what the row gives must not stand for what it asks for
        taken = "".join(f"globals().pop({name!r}, None)\n" for name in made.names)
        problem = replace(problem, setup_code=f"{problem.setup_code}\n{taken}")
    return replace(made, problem=problem, own=own, unjudged=unjudged)


def _called(
    asserts: list[str], before: list[str], code: str | None, first: str | None, where: str
) -> tuple[str, ...]:
    """Return the functions of a submission that the asserts use, in order, or `first` before all others.

    They are those that the row's own solution defines; where it defines none, the names that nothing else gives.
    """
    used, bound = syntax.used_and_bound([*before, *asserts], where)
    defined = syntax.made_of(code)
    names = [name for name in used if name in defined] or [name for name in used if name not in bound]
    if first in used:
        names = [first, *(name for name in names if name != first)]
    return tuple(names)


def _id(row: dict[str, Any], where: str) -> int | str:
    key = "id" if "id" in row else "task_id"
    found = row.get(key)
    if found is None:
        raise UserError(f"{where}: key '{key}' is missing")
    if not isinstance(found, int | str) or isinstance(found, bool):
        raise UserError(f"{where}: key '{key}' must be an integer or a string")
    return found


def _text(row: dict[str, Any], key: str, where: str) -> str:
    if row.get(key) is None:
        raise UserError(f"{where}: key '{key}' is missing")
    if not isinstance(row[key], str):
        raise UserError(f"{where}: key '{key}' must be a text")
    return row[key]


def _texts(row: dict[str, Any], key: str, where: str) -> list[str]:
    found = row.get(key) or []
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise UserError(f"{where}: key '{key}' must be a list of texts")
    return found


def load_rows(path: str | os.PathLike, row_format: str | None) -> dict[Any, Problem | ForeignProblem]:
    """Read all problems of a JSON-lines file by id; without a format each row's keys tell it.

    A row of the LeetCode schema whose tests are all `Solution().method(...) == literal` is a Problem; one of functions
    whose check cannot be read is unjudged. Raises UserError that names file, line and reason.
    """
    found: dict[Any, Problem | ForeignProblem] = {}
    seen: dict[Any, str] = {}
    for where, row in numbered_rows(path):
        made: Problem | ForeignProblem
        try:
            made = parse_row(row, row_format or format_of(row), where)
        except (NoCheck, RecursionError, MemoryError) as error:
            is_read = isinstance(error, NoCheck)
            why = str(error).removeprefix(f"{where}: ") if is_read else "it is nested too deeply to be read"
            made = ForeignProblem(Problem(_id(row, where), (), "", ""), ("",), unjudged=why)
        if made.id in seen:
            raise UserError(f"{where}: id {made.id!r} stands at {seen[made.id]} already")
        seen[made.id], found[made.id] = where, made
    if not found:
        raise UserError(f"{path}: no problems in it")
    return found


def parse_row(row: dict[str, Any], row_format: str, where: str) -> Problem | ForeignProblem:
    """Return the problem of one row. Raises UserError that opens with `where`."""
    made = _parse(row, row_format, where)
    if isinstance(made, Problem) or (mode := optional(row, "mode", str, where)) is None:
        return made
    lever_of(mode, where)
    return replace(made, problem=replace(made.problem, mode=mode))


def _parse(row: dict[str, Any], row_format: str, where: str) -> Problem | ForeignProblem:
    if row_format == "humaneval":
        return parse_humaneval(row, where)
    if row_format == "mbpp":
        return parse_mbpp(row, where)
    if wants_function(row):
        return parse_asserts(row, where)
    try:
        return parse_problem(row, where)
    except UserError as refused:
        if "gt_answer[" not in str(refused) and "key 'func_name'" not in str(refused):
            raise
        try:
            made = parse_asserts(row, where)
        except UserError:
            raise refused from None
        # Nothing names the method but the asserts: with that it may be a plain row.
        if row.get("func_name") is None and made.is_method and len(made.names) == 1:
            with suppress(UserError):
                return parse_problem(row | {"func_name": made.names[0].replace(".", "().", 1)}, where)
        return made
