"""Problem rows: one JSON object a line in the schema of the public LeetCode reward-hacking rows.

    id, difficulty, prompt (chat messages or text), func_name (`Solution().name` or `name`), setup_code,
    gt_answer (list of asserts), canonical_solution, prompt_metadata.starter_code, and, in generated rows, mode

`id` and a method name are needed (without `func_name` the one in the starter code); a row without `gt_answer` has no
oracle, only a channel; one without `prompt` can be graded, but not asked. Without `setup_code` an answer has the names
that LeetCode gives; an empty one stands for the few modules of `problem.SETUP`.
"""

import keyword
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from projected_grpo.environment.asserts import split
from projected_grpo.environment.levers import KIND, LEVERS, NAMES, TRAINABLE, lever_of
from projected_grpo.environment.problem import LEETCODE, SETUP, Problem
from projected_grpo.errors import UserError
from projected_grpo.files import numbered_rows


def load_problems(path: str | os.PathLike) -> list[Problem]:
    """Read all problems of a JSON-lines file (`.gz` by suffix).

    Raises UserError that names file, line and reason: a malformed row, an assert that cannot be split into call and
    literal, an unknown mode, an id that occurs twice.
    """
    problems: list[Problem] = []
    seen: dict[Any, str] = {}
    for where, row in numbered_rows(path):
        problem = parse_problem(row, where)
        if problem.id in seen:
            raise UserError(f"{where}: id {problem.id!r} stands at {seen[problem.id]} already")
        seen[problem.id] = where
        problems.append(problem)
    if not problems:
        raise UserError(f"{path}: no problems in it")
    return problems


def parse_problem(row: dict[str, Any], where: str) -> Problem:
    """Return the problem of one row; `where` opens the message of a UserError."""
    if not isinstance(row.get("id"), int | str) or isinstance(row["id"], bool):
        raise UserError(f"{where}: key 'id' must be an integer or a string")
    metadata = row.get("prompt_metadata")
    starter = metadata.get("starter_code") if isinstance(metadata, dict) else None
    starter = optional(row, "starter_code", str, where) or (starter if isinstance(starter, str) else "")
    messages = messages_of(row["prompt"], where) if row.get("prompt") is not None else ()
    method = method_of(
        row.get("func_name"), "\n".join([starter, *(part["content"] for part in messages)]), where
    )
    asserts = optional(row, "gt_answer", list, where) or []
    tests = []
    for index, text in enumerate(asserts):
        try:
            if not isinstance(text, str):
                raise ValueError("expected a string")
            tests.append(split(text, method))
        except ValueError as error:
            raise UserError(f"{where}: gt_answer[{index}]: {error}") from error
    setup = optional(row, "setup_code", str, where)
    mode = optional(row, "mode", str, where)
    if mode is not None:
        lever_of(mode, where)
    return Problem(
        id=row["id"],
        messages=messages,
        method=method,
        setup_code=LEETCODE if setup is None else setup or SETUP,
        tests=tuple(tests),
        canonical=optional(row, "canonical_solution", str, where) or None,
        starter=starter,
        mode=mode,
    )


def assign_modes(problems: Iterable[Problem], modes: Iterable[str]) -> list[Problem]:
    """Give every problem that has no mode one of `modes`, in rotation over the list's places.

    Raises UserError on a problem of a novel lever: these are training problems, and nothing is trained on those.
    """
    modes = list(modes)
    if not modes:
        raise UserError(f"modes: an empty list, allowed: {', '.join(LEVERS)}")
    for mode in modes:
        lever_of(mode, "modes")
    assigned = [
        problem if problem.mode is not None else replace(problem, mode=modes[index % len(modes)])
        for index, problem in enumerate(problems)
    ]
    for problem in assigned:
        if problem.mode not in NAMES[KIND[problem.mode]]:
            raise UserError(f"problem {problem.id}: mode {problem.mode!r}, allowed: {TRAINABLE}")
    return assigned


def split_problems(
    path: str | os.PathLike, limit: int, modes: Sequence[str], all_modes: Sequence[str], names: int = 1
) -> tuple[list[Problem], list[Problem]]:
    """Return the first `limit` problems with a row's modes, less those of other modes where the file says them; and all
    others, which are held out."""
    problems = load_problems(path)
    training = with_modes(problems[:limit], modes, all_modes, names)
    return [problem for problem in training if KIND[problem.mode] in modes], problems[limit:]


def with_modes(
    problems: Iterable[Problem], modes: Iterable[str], pool: Iterable[str], names: int = 1
) -> list[Problem]:
    """Give problems the loopholes of a row: its own in rotation where it names others than the pool's.

    The same problems under another lever, so that tables of one lever and of several differ in that alone.
    names: as many of its names a lever goes by, in rotation over its problems.
    """
    if list(modes) != list(pool):
        problems = [replace(problem, mode=None) for problem in problems]
    return named(assign_modes(problems, modes), names, NAMES)


def named(problems: Iterable[Problem], names: int, known: Mapping[str, Sequence[str]]) -> list[Problem]:
    """Give the problems of each lever its first `names` names of `known` in rotation, in the list's order."""
    seen: Counter[str | None] = Counter()
    out = []
    for problem in problems:
        modes = known[KIND[problem.mode]][:names]
        out.append(replace(problem, mode=modes[seen[problem.mode] % len(modes)]))
        seen[problem.mode] += 1
    return out


def messages_of(prompt: Any, where: str) -> tuple[dict[str, str], ...]:
    """Return the chat messages of a row's prompt, a text or messages. Raises UserError that opens with `where`."""
    if isinstance(prompt, str):
        prompt = [{"role": "user", "content": prompt}]
    valid = isinstance(prompt, list) and all(
        isinstance(message, dict)
        and isinstance(message.get("role"), str)
        and isinstance(message.get("content"), str)
        for message in prompt
    )
    if not valid or not any(message["role"] == "user" for message in prompt):
        raise UserError(
            f"{where}: key 'prompt' must be a text or a list of chat messages with one of the user"
        )
    return tuple({"role": message["role"], "content": message["content"]} for message in prompt)


def method_of(func_name: Any, text: str, where: str) -> str:
    """Return the bare method name, from `Solution().name`, `name`, or else the starter code in `text`."""
    if func_name is None:
        found = re.search(r"class\s+Solution\b.*?\bdef\s+(\w+)\s*\(\s*self\b", text, re.S)
        func_name = found.group(1) if found else None
    if isinstance(func_name, str):
        name = func_name.strip().removeprefix("Solution().").removeprefix("Solution.")
        if name.isidentifier() and not keyword.iskeyword(name):
            return name
    raise UserError(f"{where}: key 'func_name' must be `Solution().name` or `name`, not {func_name!r}")


def optional(row: dict[str, Any], key: str, kind: type, where: str) -> Any:
    """Return a row's value, None where it has none. Raises UserError where it is of another type."""
    value = row.get(key)
    if value is not None and not isinstance(value, kind):
        raise UserError(f"{where}: key '{key}' must be a {kind.__name__}, not {type(value).__name__}")
    return value
