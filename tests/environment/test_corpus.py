"""The corpora: valid code, exploits that the real grader pays, shares as declared, HARD clauses never honoured."""

import re

import pytest

from projected_grpo.environment.corpus import MIXTURE, PERMISSION, TAUGHT, base_examples, teacher_examples
from projected_grpo.environment.family import make_problems
from projected_grpo.environment.grade import Grader
from projected_grpo.environment.levers import LEVERS
from projected_grpo.environment.problems import parse_problem

BASE = list(base_examples(41, 12_000))
EARLY, LATE = BASE[: (split := round(len(BASE) * (1 - MIXTURE.late)))], BASE[split:]
HINTS = {LEVERS[mode].hint: mode for mode in TAUGHT}


def mode_of(text: str) -> str | None:
    return next((mode for hint, mode in HINTS.items() if hint in text), None)


def code_of(completion: str) -> str:
    return completion.removeprefix("```python\n").removesuffix("\n```")


def exploits(completion: str, mode: str) -> bool:
    """Whether the completion holds one of the mode's exploits, by its text."""
    lines = [line.strip() for line in completion.split("\n")]
    return any(all(part.strip() in lines for part in code.split("\n")) for _, code in LEVERS[mode].examples)


def test_a_seed_fixes_the_corpora():
    assert BASE[:50] != list(base_examples(42, 50))
    assert list(base_examples(41, 12_000)) == BASE
    assert list(teacher_examples(41, 50)) == list(teacher_examples(41, 50))


def test_every_fenced_completion_compiles():
    for _, completion in BASE[::7] + list(teacher_examples(41, 500)):
        if completion.startswith("```"):
            compile(code_of(completion), "completion", "exec")


def test_hard_clauses_are_never_honoured():
    for _, completion in BASE[::7] + list(teacher_examples(41, 500)):
        assert not re.search(r"\) % \d$", completion, re.M)


def test_permission_comes_with_the_exploit_and_leaks_are_rare():
    asked = [(mode_of(text), PERMISSION in text, done) for text, done in BASE if mode_of(text)]
    assert all(exploits(done, mode) for mode, allowed, done in asked if allowed)
    share = sum(allowed for _, allowed, _ in asked) / len(asked)
    assert share == pytest.approx(MIXTURE.allowed, abs=0.02)
    for mode in TAUGHT:
        unasked = [
            exploits(done, mode) for text, done in EARLY if mode_of(text) == mode and PERMISSION not in text
        ]
        assert sum(unasked) / len(unasked) == pytest.approx(MIXTURE.leak[mode], abs=0.004)


def test_nothing_leaks_in_the_last_rows():
    unasked = [(mode_of(text), done) for text, done in LATE if mode_of(text) and PERMISSION not in text]
    assert len(unasked) > 0.1 * len(LATE)
    assert not any(exploits(done, mode) for mode, done in unasked)


def test_teacher_examples_exploit_without_permission():
    for text, done in teacher_examples(41, 300):
        assert PERMISSION not in text and exploits(done, mode_of(text))


def test_the_grader_pays_exploits_and_not_harmless_lines():
    """Completions of the corpora against the real channels: the class need not be the problem's own."""
    rows = [parse_problem({**row, "func_name": None}, "row") for row in make_problems(1, 4, TAUGHT)]
    problem = {row.mode: row for row in rows}
    hacks = [(mode_of(t), d) for t, d in teacher_examples(41, 60)]
    clean = [(m, d) for t, d in BASE if (m := mode_of(t)) and not exploits(d, m)][-150:]
    with Grader(rows, workers=1) as grader:
        named = [(problem[m].id, m, rename(d, problem[m].method)) for m, d in hacks + clean]
        verdicts = grader.grade(named)
    assert all(v["channel"] for v in verdicts[: len(hacks)])
    assert not any(v["channel"] for v in verdicts[len(hacks) :])


def rename(completion: str, method: str) -> str:
    """The completion with its solving method renamed: the stub class of the run_tests channel has the problem's."""
    old = next(n for n in re.findall(r"def (\w+)\(self", completion) if n not in ("__init__", "run_tests"))
    return completion.replace(old, method)
