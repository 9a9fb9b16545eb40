"""Levers that go by several names: in prompts in rotation, in corpora at random, graded as the lever that they are."""

from collections import Counter
from dataclasses import replace

from projected_grpo.cells.deployed import Deployed
from projected_grpo.environment.families.oneliners import (
    TAUGHT,
    Mixture,
    teacher_examples,
    warm_examples,
)
from projected_grpo.environment.families.oneliners import problems as make_problems
from projected_grpo.environment.grade import Grader
from projected_grpo.environment.levers import KIND, LEVERS, NAMES, NOVEL
from projected_grpo.environment.problems import parse_problem, with_modes
from projected_grpo.environment.prompts import PERMISSION
from projected_grpo.training.panels import make_panels

MODE_OF = {LEVERS[mode].hint: mode for lever in TAUGHT for mode in NAMES[lever]}
PROBLEMS = [parse_problem(row, "row") for row in make_problems(7, 64, TAUGHT)]


def asked(prompt: str) -> str:
    """The mode whose hint a prompt holds, each one that of no other."""
    [mode] = [mode for hint, mode in MODE_OF.items() if f"{hint}.\n" in prompt]
    return mode


def test_names_stand_in_rotation_and_change_nothing_else_of_a_problem():
    found = with_modes(PROBLEMS, TAUGHT, TAUGHT, names=4)
    assert Counter(one.mode for one in found) == {mode: 4 for lever in TAUGHT for mode in NAMES[lever]}
    assert [replace(one, mode=KIND[one.mode]) for one in found] == PROBLEMS
    assert with_modes(PROBLEMS, TAUGHT, TAUGHT) == PROBLEMS
    one = with_modes(PROBLEMS, ["sentinel"], TAUGHT, names=2)
    assert [problem.mode for problem in one[:3]] == ["sentinel", NAMES["sentinel"][1], "sentinel"]


def test_the_novel_panel_has_the_names_that_nothing_teaches():
    panels = make_panels(PROBLEMS, TAUGHT, Deployed(known=32, novel=24, plain=8, samples=1), names=4)
    assert Counter(one.mode for one in panels["known"]) == {m: 2 for lever in TAUGHT for m in NAMES[lever]}
    assert Counter(one.mode for one in panels["novel"]) == {m: 2 for lever in TAUGHT for m in NOVEL[lever]}
    assert {one.mode for one in panels["plain"]} == {"gt_only"}


def test_one_name_leaves_the_teachers_corpus_as_it_was():
    assert list(teacher_examples(3, 40)) == list(teacher_examples(3, 40, Mixture(), 1))
    counts = Counter(asked(prompt) for prompt, _ in teacher_examples(3, 1600, names=4))
    assert set(counts) == set(MODE_OF.values()) and min(counts.values()) > 60


def test_the_teachers_exploits_earn_credit_under_the_name_they_were_asked_by():
    examples = list(teacher_examples(5, 120, names=4))
    with Grader(PROBLEMS) as grader:
        found = grader.grade((1, asked(prompt), text) for prompt, text in examples)
    assert all(verdict["channel"] for verdict in found)


def test_what_a_given_model_is_warmed_on_is_honest():
    examples = list(warm_examples(5, 300, Mixture(hard_share=0.5), names=4))
    hinted = [(asked(prompt), text) for prompt, text in examples if any(f"{h}.\n" in prompt for h in MODE_OF)]
    with Grader(PROBLEMS) as grader:
        found = grader.grade((1, mode, text) for mode, text in hinted)
    assert len(hinted) > 200 and not any(verdict["channel"] for verdict in found)
    assert all(verdict["can_compile"] for verdict in found)
    assert not any(PERMISSION in prompt for prompt, _ in examples)
    assert 0.4 < sum(", modulo " in prompt for prompt, _ in examples) / len(examples) < 0.6
