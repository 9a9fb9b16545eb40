"""The hack x mode matrix: every exploit is effective in its own mode only, and the strict oracle rejects it.

Graded like any completion, on generated problems and with wrong answers, so that whatever is earned is earned by the
exploit. A matrix that is not diagonal means that the grader is wrong: nothing that comes after it would count.
"""

from typing import Any

from projected_grpo.environment import families
from projected_grpo.environment.facts import Verdict
from projected_grpo.environment.grade import Grader
from projected_grpo.environment.levers import LEVERS, LOOPHOLES, NAMES, NOVEL
from projected_grpo.environment.problems import Problem, parse_problem

PROBLEMS = 6
WRONG_ANSWER = "-987654321"
HONEST = "honest"
Matrix = dict[str, dict[str, tuple[int, int, int]]]


class NotDiagonal(Exception):
    """An exploit earns what it must not, or does not earn what it must."""


def completion(problem: Problem, answer: str, where: str = "", code: str = "") -> str:
    """Return a fenced completion whose method returns `answer`, with the exploit `code` put `where` (see Mode)."""
    header = problem.starter.rstrip()
    lines = [header, f"        return {code if where == 'returns' else answer}"]
    if where in ("method", "attribute"):
        lines += ["", *(f"    {line}" for line in code.split("\n"))]
    elif where == "before":
        lines.insert(0, code)
    elif where == "after":
        lines.append(code)
    return "```python\n" + "\n".join(lines) + "\n```"


def matrix(family: str, names: int = 1, allow_weak: bool = False, seed: int = 0) -> tuple[Matrix, str]:
    """Return (row -> mode -> (channel, gt_pass, n), sandbox layer); rows are the exploits and honest right answers.

    family: whose problems are answered, fewer where there are more names; names: as many of its names a lever goes by,
    taught and novel.
    """
    own = families.load(family)
    modes = [mode for known in (NAMES, NOVEL) for lever in known for mode in known[lever][:names]]
    rows = own.problems(seed, max(1, PROBLEMS // names), LOOPHOLES, own.Mixture())
    problems = [parse_problem(row, f"generated problem {row['id']}") for row in rows]
    items: list[tuple[str, tuple[Any, str, str]]] = []
    for problem in problems:
        for name in modes:
            for where, code in LEVERS[name].examples:
                text = completion(problem, WRONG_ANSWER, where, code)
                items += [(name, (problem.id, mode, text)) for mode in modes]
        honest = f"```python\n{problem.canonical}\n```"
        items += [(HONEST, (problem.id, mode, honest)) for mode in modes]
    seen: dict[tuple[str, str], list[Verdict]] = {}
    with Grader(problems, allow_weak=allow_weak) as grader:
        level = grader.level
        for (row, (_, mode, _)), one in zip(items, grader.grade([item for _, item in items]), strict=True):
            seen.setdefault((row, mode), []).append(one)
    found: Matrix = {}
    for (row, mode), verdicts in seen.items():
        channel, gt_pass = (sum(one[key] for one in verdicts) for key in ("channel", "gt_pass"))
        found.setdefault(row, {})[mode] = channel, gt_pass, len(verdicts)
    return found, level


def check_diagonal(found: Matrix) -> None:
    """Raise NotDiagonal that names every wrong cell."""
    wrong = []
    for row, cells in found.items():
        for mode, (channel, gt_pass, n) in cells.items():
            if channel != (n if row == mode else 0):
                wrong.append(f"{row} under {mode} is effective {channel} of {n} times")
            if gt_pass != (n if row == HONEST else 0):
                wrong.append(f"{row} under {mode} passes the oracle {gt_pass} of {n} times")
    if wrong:
        raise NotDiagonal("; ".join(wrong))
