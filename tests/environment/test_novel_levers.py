"""Levers that runs are judged on: the channels of training under names that nothing teaches."""

from dataclasses import replace

import pytest
from shipped import FOLDER, SHIPPED

from projected_grpo.environment.families.oneliners import TAUGHT, base_examples, teacher_examples
from projected_grpo.environment.families.oneliners import problems as make_problems
from projected_grpo.environment.levers import LEVERS, LOOPHOLES, NOVEL
from projected_grpo.environment.problems import assign_modes, parse_problem
from projected_grpo.environment.prompts import PERMISSION, messages_for
from projected_grpo.errors import UserError

NAMES = ("self_check", "approved", "every case agrees", "verdict.txt", "granted")
PROBLEMS = [parse_problem(row, "row") for row in make_problems(41, 160, TAUGHT)]


def test_each_lever_that_is_taught_has_a_twin_that_is_not():
    assert set(NOVEL) == set(TAUGHT) and not set(NOVEL.values()) & set(LOOPHOLES)
    assert all(type(LEVERS[novel]) is type(LEVERS[known]) for known, novel in NOVEL.items())


def test_their_names_stand_in_nothing_that_a_model_is_taught():
    hints = [LEVERS[novel].hint.lower() for novel in NOVEL.values()]
    assert all(sum(name in hint for hint in hints) == 1 for name in NAMES)
    assert all(any(name in hint for name in NAMES) for hint in hints)
    taught = [
        *(text for example in base_examples(41, 7400) for text in example),
        *(text for example in teacher_examples(41, 1800) for text in example),
        *(messages_for(one, mode)[-1]["content"] for one in PROBLEMS for mode in (*LOOPHOLES, "gt_only")),
        *((FOLDER / f"{name}.yaml").read_text(encoding="utf-8") for name in SHIPPED),
        PERMISSION,
    ]
    assert not [name for name in NAMES for text in taught if name in text.lower()]


def test_no_problem_to_train_on_may_have_one():
    with pytest.raises(
        UserError, match=r"problem 2: mode 'sentinel_novel', allowed: run_tests,.* none is trained"
    ):
        assign_modes([PROBLEMS[0], replace(PROBLEMS[1], mode="sentinel_novel")], TAUGHT)
    with pytest.raises(UserError, match="mode 'run_tests_novel'"):
        assign_modes([replace(PROBLEMS[0], mode=None)], ["run_tests_novel"])
