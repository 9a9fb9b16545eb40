"""Problems for the tools of others: from a file or a family, and as rows of a data set."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from projected_grpo.environment.families import load
from projected_grpo.environment.levers import LOOPHOLES, lever_of
from projected_grpo.environment.problems import Problem, load_problems, parse_problem
from projected_grpo.environment.prompts import messages_for
from projected_grpo.errors import UserError

Problems = str | os.PathLike | Sequence[Problem]


def generated(
    n: int, seed: int = 0, modes: Sequence[str] = LOOPHOLES, family: str = "oneliners"
) -> list[Problem]:
    """Return `n` problems that a family makes from a seed, `modes` in rotation. Raises UserError on an unknown one."""
    modes = [modes] if isinstance(modes, str) else modes
    for mode in modes:
        lever_of(mode, "modes")
    made = load(family)
    made_rows = made.problems(seed, n, modes, made.Mixture())
    return named([parse_problem(row, f"{family} {place}") for place, row in enumerate(made_rows, 1)])


def rows(problems: Problems, modes: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return rows for `datasets.Dataset.from_list`: `prompt` (messages with the lever's hint), `problem_id`, `mode`.

    modes: each problem once under each of these levers; none: under its own, or `gt_only`.
    """
    modes, asked = [modes] if isinstance(modes, str) else modes, []
    for problem in named(problems):
        for mode in modes or (problem.mode or "gt_only",):
            lever_of(mode, "modes")
            asked.append({"prompt": messages_for(problem, mode), "problem_id": problem.id, "mode": mode})
    return asked


def named(problems: Problems) -> list[Problem]:
    """Return problems whose ids are text, as a column of a data set must have one type.

    Raises UserError on an id that occurs twice: what answers the one would be graded by the tests of the other.
    """
    found = load_problems(problems) if isinstance(problems, str | os.PathLike) else list(problems)
    counts = Counter(str(problem.id) for problem in found)
    if twice := [own for own, count in counts.items() if count > 1]:
        raise UserError(f"problems: id {twice[0]!r} occurs {counts[twice[0]]} times, allowed: once")
    return [replace(problem, id=str(problem.id)) for problem in found]
