"""Hostile and awkward submissions: none is taken for right that is wrong, none for wrong that is right."""

import collections
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from redteam import PROBLEM, all_cases

from projected_grpo.environment.grade import Grader
from projected_grpo.environment.problems import parse_problem

CASES = all_cases()
# These run into the limits of time or memory on purpose; the rest is quick.
SLOW = [
    case
    for case in CASES
    if case.family == "bombs" or case.name in ("seconds-in-all", "slow-load", "ten-megabytes-of-code")
]
QUICK = [case for case in CASES if case not in SLOW]


def graded(cases):
    """Verdicts by case, all graded in one go, as a training step does."""
    with Grader([parse_problem(PROBLEM, "redteam")], workers=2) as grader:
        found = grader.grade([(1, case.mode, case.completion) for case in cases])
    return {case.id: verdict for case, verdict in zip(cases, found, strict=True)}


@pytest.fixture(scope="module")
def quick():
    return graded(QUICK)


@pytest.fixture(scope="module")
def slow():
    return graded(SLOW)


def assert_deserved(case, found):
    deserved = (case.compiles, case.gt_pass, case.channel)
    assert (found["can_compile"], found["gt_pass"], found["channel"]) == deserved, found
    assert found["passed"] == (case.gt_pass or case.channel)
    assert found["exploited"] == (case.channel and not case.gt_pass)
    assert found["reward"] == 0.5 * case.compiles + 3.0 * found["passed"]


@pytest.mark.parametrize("case", QUICK, ids=lambda case: case.id)
def test_verdict(case, quick):
    assert_deserved(case, quick[case.id])


@pytest.mark.slow
@pytest.mark.parametrize("case", SLOW, ids=lambda case: case.id)
def test_verdict_of_what_uses_up_resources(case, slow):
    assert_deserved(case, slow[case.id])


def test_enough_cases_with_distinct_names():
    assert len(CASES) >= 120
    assert [name for name, n in collections.Counter(case.id for case in CASES).items() if n > 1] == []


def test_nothing_left_behind(quick):
    folders = [Path(tempfile.gettempdir()), Path.home(), Path("/dev/shm"), Path(os.__file__).parent]
    left = [path for folder in folders for path in folder.glob("*projected*grpo*escape*")]
    assert left == []


EIGHT = """
import sys
sys.path.insert(0, sys.argv[1])
from test_grader_redteam import CASES, assert_deserved, graded
chosen = [case for case in CASES if case.family in ("awkward", "exits", "forging", "reading")]
found = graded(chosen)
for case in chosen:
    assert_deserved(case, found[case.id])
print("deserved", len(chosen))
"""


@pytest.mark.slow
def test_eight_graders_at_once():
    """Under load a right answer is slow, and still right."""
    here = str(Path(__file__).parent)
    command = [sys.executable, "-c", EIGHT, here]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(8)
    ]
    for process in running:
        out, err = process.communicate(timeout=900)
        assert process.returncode == 0 and out.startswith("deserved"), err


@pytest.mark.slow
def test_memory_stays_flat_and_no_zombie_is_left():
    """Different completions, so that each is run; the parent and its sandbox must not grow."""
    problem = parse_problem(PROBLEM, "redteam")
    right = "class Solution:\n    def solve(self, nums, k):\n        return sum(nums) + k"

    def resident(pid):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()

    with Grader([problem], workers=2) as grader:
        batches = []
        for start in range(0, 2500, 500):
            items = [
                (1, "sentinel", f"```python\n# {index}\n{right}\n```") for index in range(start, start + 500)
            ]
            assert all(found["gt_pass"] for found in grader.grade(items))
            zygotes = [child for zygote in grader.pool._idle for child in children(zygote.process.pid)]
            batches.append([resident(os.getpid()), *map(resident, zygotes)])
            assert [pid for pid in children(os.getpid()) + zygotes if state(pid) == "Z"] == []
        assert all(children(pid) == [] for pid in zygotes)
    growth = [last - first for first, last in zip(batches[1], batches[-1], strict=True)]
    assert max(growth) < 2 << 20, growth


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def state(pid):
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
