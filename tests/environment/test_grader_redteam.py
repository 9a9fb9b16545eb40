"""Hostile and awkward submissions: none is taken for right that is wrong, none for wrong that is right."""

import collections
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from layers import each_layer, need
from redteam import FAMILIES, PROBLEM, RIGHT, all_cases, cases_of
from redteam.compiling import ODD, TEXTS

from projected_grpo.environment.grade import Grader
from projected_grpo.environment.problems import parse_problem
from projected_grpo.sandbox.levels import STRONG

CASES = all_cases()
# These run into the limits of time or memory on purpose, by the dozen.
SLOW = ("bombs",)
# One check at a time on the machine: sleepers wait for one another.
IN_TURN = ("landlock", "stalling")  # layer and family
FEW = 10  # cases of a family, about, that are checked unless all slow tests are run
each_layer_sleeping = pytest.mark.parametrize(
    "level", [pytest.param(level, marks=pytest.mark.slow) if level in IN_TURN else level for level in STRONG]
)


def graded(cases, levels=STRONG, workers=2):
    """Verdicts by case, all graded in one go, as a training step does."""
    with Grader([parse_problem(PROBLEM, "redteam")], workers=workers, levels=levels) as grader:
        found = grader.grade([(1, case.mode, case.completion) for case in cases])
    return {case.id: verdict for case, verdict in zip(cases, found, strict=True)}


def assert_deserved(case, found):
    deserved = (case.compiles, case.gt_pass, case.channel)
    assert (found["can_compile"], found["gt_pass"], found["channel"]) == deserved, found
    assert found["passed"] == (case.gt_pass or case.channel)
    assert found["exploited"] == (case.channel and not case.gt_pass)
    assert found["reward"] == 0.5 * case.compiles + 3.0 * found["passed"]


def assert_family_deserved(family, level, every=1):
    """every: which of the cases, the first of so many."""
    need(level)
    cases = cases_of(family)[::every]
    found = graded(cases, (level,))
    wrong = {}
    for case in cases:
        try:
            assert_deserved(case, found[case.id])
        except AssertionError:
            wrong[case.id] = found[case.id]
    assert not wrong


@each_layer
@pytest.mark.parametrize("family", [family for family in FAMILIES if family not in (*SLOW, *IN_TURN)])
def test_verdicts(family, level):
    assert_family_deserved(family, level, every=max(1, len(cases_of(family)) // FEW))


@pytest.mark.slow
@each_layer
@pytest.mark.parametrize(
    "family", [family for family in FAMILIES if len(cases_of(family)) >= 2 * FEW and family not in SLOW]
)
def test_verdicts_of_every_case(family, level):
    assert_family_deserved(family, level)


@each_layer_sleeping
def test_verdicts_of_what_sleeps(level):
    assert_family_deserved("stalling", level)


@pytest.mark.slow
@each_layer
@pytest.mark.parametrize("family", SLOW)
def test_verdicts_of_what_uses_up_resources(family, level):
    assert_family_deserved(family, level)


@each_layer
def test_no_text_ends_a_batch(level):
    """Each is judged by itself, whatever it does to the compiler: what comes with it is right."""
    need(level)
    # The longest ones cost the compiler seconds: once is enough, they do not come as far as the layer.
    texts = [text for name, text in TEXTS.items() if level == STRONG[0] or "100000" not in name]
    texts += ODD.values()
    items = []
    for number, text in enumerate(texts):
        items.append((1, "run_tests", f"```python\n{text}\n```"))
        items.append((1, "sentinel", f"```python\n# {number}\n{RIGHT}\n```"))
    with Grader([parse_problem(PROBLEM, "redteam")], levels=(level,)) as grader:
        found = grader.grade(items)
    assert all(verdict["gt_pass"] for verdict in found[1::2])
    assert not any(verdict["passed"] for verdict in found[::2])


@each_layer_sleeping
def test_no_submission_costs_more_than_its_share(level):
    """Three seconds of CPU, fifteen of wall, alone on a worker; twice that of wall where others share the cores."""
    need(level)
    chosen = (
        "short-sleeps",
        "heartbeats",
        "long-naps",
        "leader-exits",
        "calls-nap-and-tests-nap",
        "method-and-tests-loop",
    )
    with Grader([parse_problem(PROBLEM, "redteam")], workers=1, levels=(level,)) as grader:
        assert grader.level == level
        jobs = {
            case.name: grader._job(grader.problems[1], case.mode, case.code)
            for case in cases_of("stalling")
            if case.name in chosen
        }
        assert len(jobs) == len(chosen)
        began = {}

        def started():
            for name, job in jobs.items():
                began[name] = time.monotonic()
                yield name, job

        for name, seen in grader.pool.run(started()):
            assert sum(one["cpu"] for one in seen) < 3.6, name
            assert time.monotonic() - began[name] < 30, name


def test_enough_cases_with_distinct_names():
    assert len(CASES) >= 120
    assert [name for name, n in collections.Counter(case.id for case in CASES).items() if n > 1] == []


def test_nothing_left_behind():
    graded(cases_of("escapes"))
    folders = [Path(tempfile.gettempdir()), Path.home(), Path("/dev/shm"), Path(os.__file__).parent]
    left = [path for folder in folders for path in folder.glob("*projected*grpo*escape*")]
    assert left == []


@pytest.mark.slow
def test_hostile_texts_among_many_cost_little():
    """Every twentieth text hostile, of the kinds that do not use up their seconds: no more than 1.5 times as long."""
    kinds = ("theft", "reporters", "sharing", "lying", "patching", "forging", "exits", "reading", "inert")
    hostile = [case for family in kinds for case in cases_of(family)]
    modes = ("run_tests", "sentinel", "gt_only", "eq_override")

    def good(number):
        return 1, modes[number % 4], f"```python\n# {number}\n{RIGHT}\n```"

    def seconds(items):
        with Grader([parse_problem(PROBLEM, "redteam")]) as grader:
            assert grader.level in STRONG
            began = time.monotonic()
            grader.grade(items)
            return time.monotonic() - began

    plain = [good(number) for number in range(1900)]
    mixed = [good(number) for number in range(2000)]
    for place in range(19, 2000, 20):
        case = hostile[(7 * place) % len(hostile)]
        mixed[place] = 1, case.mode, case.completion
    assert seconds(mixed) < 1.5 * min(seconds(plain), seconds(plain))


EIGHT = """
import sys
sys.path[:0] = sys.argv[1:]
from test_grader_redteam import CASES, assert_deserved, graded
chosen = [case for case in CASES if case.family in ("awkward", "exits", "forging", "reading", "fair")]
found = graded(chosen)
for case in chosen:
    assert_deserved(case, found[case.id])
print("deserved", len(chosen))
"""


@pytest.mark.slow
def test_eight_graders_at_once():
    """Under load a right answer is slow, and still right."""
    here = Path(__file__).parent
    command = [sys.executable, "-c", EIGHT, str(here), str(here.parent / "helpers")]
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
