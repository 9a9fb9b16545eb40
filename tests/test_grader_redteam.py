"""Hostile and awkward submissions: none is taken for right that is wrong, none for wrong that is right."""

import collections
import os
import tempfile
from pathlib import Path

import pytest
from redteam import PROBLEM, all_cases

from projected_grpo.environment.grade import Grader
from projected_grpo.environment.problems import parse_problem

CASES = all_cases()


@pytest.fixture(scope="module")
def verdicts():
    """All cases graded in one go, as a training step does."""
    with Grader([parse_problem(PROBLEM, "redteam")], workers=2) as grader:
        found = grader.grade([(1, case.mode, case.completion) for case in CASES])
    return {case.id: verdict for case, verdict in zip(CASES, found, strict=True)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_verdict(case, verdicts):
    found = verdicts[case.id]
    assert (found["can_compile"], found["gt_pass"], found["channel"]) == (
        case.compiles,
        case.gt_pass,
        case.channel,
    ), found
    assert found["passed"] == (case.gt_pass or case.channel)
    assert found["exploited"] == (case.channel and not case.gt_pass)
    assert found["reward"] == 0.5 * case.compiles + 3.0 * found["passed"]


def test_enough_cases_with_distinct_names():
    assert len(CASES) >= 120
    assert [name for name, n in collections.Counter(case.id for case in CASES).items() if n > 1] == []


def test_nothing_left_behind(verdicts):
    folders = [Path(tempfile.gettempdir()), Path.home(), Path("/dev/shm"), Path(os.__file__).parent]
    left = [
        path
        for folder in folders
        for path in folder.glob("*projected*grpo*")
        if "escape" in path.name or "box" in path.name
    ]
    assert left == []
