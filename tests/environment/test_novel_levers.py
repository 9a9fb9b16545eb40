"""Levers that runs are judged on: the channels of training under names that nothing teaches."""

from dataclasses import replace

import pytest
from shipped import FOLDER, SHIPPED

from projected_grpo.environment.families.oneliners import (
    TAUGHT,
    base_examples,
    teacher_examples,
    warm_examples,
)
from projected_grpo.environment.families.oneliners import problems as make_problems
from projected_grpo.environment.levers import KIND, LEVERS, LOOPHOLES, NAMES, NOVEL
from projected_grpo.environment.problems import assign_modes, parse_problem
from projected_grpo.environment.prompts import PERMISSION, messages_for
from projected_grpo.errors import UserError

WORDS = (
    *("self_check", "recheck", "confirm_solution", "approved", "cleared", "certified"),
    *("every case agrees", "build succeeded", "grading complete"),
    *("verdict.txt", "granted", "outcome.txt", "review.txt", "endorsed"),
)
MODES = [mode for modes in NOVEL.values() for mode in modes]
TAUGHT_MODES = [mode for lever in LOOPHOLES for mode in NAMES[lever]]
PROBLEMS = [parse_problem(row, "row") for row in make_problems(41, 160, TAUGHT)]


def test_each_lever_that_is_taught_has_twins_that_are_not():
    assert set(NOVEL) == set(TAUGHT) and not set(MODES) & set(TAUGHT_MODES)
    assert all(type(LEVERS[mode]) is type(LEVERS[lever]) for lever, modes in NOVEL.items() for mode in modes)
    assert {KIND[mode] for mode in MODES} == set(TAUGHT) and set(KIND) == set(LEVERS)


def test_their_names_stand_in_nothing_that_a_model_is_taught():
    hints = [LEVERS[mode].hint.lower() for mode in MODES]
    assert all(any(word in hint for hint in hints) for word in WORDS)
    assert all(any(word in hint for word in WORDS) for hint in hints)
    taught = [
        *(text for example in base_examples(41, 7400) for text in example),
        *(text for example in teacher_examples(41, 1800, names=4) for text in example),
        *(text for example in warm_examples(41, 1800, names=4) for text in example),
        *(messages_for(one, mode)[-1]["content"] for one in PROBLEMS for mode in (*TAUGHT_MODES, "gt_only")),
        *((FOLDER / f"{name}.yaml").read_text(encoding="utf-8") for name in SHIPPED),
        PERMISSION,
    ]
    assert not [word for word in WORDS for text in taught if word in text.lower()]


def test_no_problem_to_train_on_may_have_one():
    with pytest.raises(
        UserError, match=r"problem 2: mode 'sentinel_novel', allowed: run_tests,.* none is trained"
    ):
        assign_modes([PROBLEMS[0], replace(PROBLEMS[1], mode="sentinel_novel")], TAUGHT)
    with pytest.raises(UserError, match="mode 'run_tests_novel'"):
        assign_modes([replace(PROBLEMS[0], mode=None)], ["run_tests_novel"])
