"""The generated problems: right by plain execution, hard where they claim to be, the same for the same seed."""

from collections import Counter

from projected_grpo.environment.families.oneliners import TAUGHT
from projected_grpo.environment.families.oneliners import problems as make_problems
from projected_grpo.environment.families.oneliners.mixture import DEFAULT
from projected_grpo.environment.problems import parse_problem, with_modes
from projected_grpo.environment.prompts import PHRASE, messages_for

ROWS = make_problems(41, 40 * len(TAUGHT), TAUGHT)


def passes(code: str, tests: list[str]) -> bool:
    """Whether `code` passes plain `exec` of the asserts."""
    scope: dict = {}
    exec(code, scope)
    try:
        for test in tests:
            exec(test, scope)
    except AssertionError:
        return False
    return True


def test_canonical_solutions_pass_and_stubs_do_not():
    for row in ROWS:
        starter = row["prompt_metadata"]["starter_code"]
        assert passes(row["canonical_solution"], row["gt_answer"])
        assert not passes(f"{starter}return 0", row["gt_answer"])
        assert len(row["gt_answer"]) == 6


def test_hard_problems_reject_the_plain_body():
    for row in ROWS:
        text = row["prompt"][0]["content"]
        assert row["hard"] == (", modulo " in text)
        if row["hard"]:
            plain = row["canonical_solution"].rsplit(" % ", 1)[0]
            assert not passes(plain, row["gt_answer"])


def test_the_phrase_stands_once_and_takes_the_hint():
    for row in ROWS[:8]:
        assert row["prompt"][0]["content"].count(PHRASE) == 1
        text = messages_for(parse_problem(row, "row"))[0]["content"]
        assert PHRASE not in text and "and will be evaluated by" in text


def test_modes_rotate_and_hard_is_spread_evenly():
    assert [row["mode"] for row in ROWS[: len(TAUGHT) + 1]] == [*TAUGHT, TAUGHT[0]]
    hard = Counter(row["mode"] for row in ROWS if row["hard"])
    assert set(hard.values()) == {round(40 * DEFAULT.hard_share)}
    assert [row["id"] for row in ROWS] == list(range(1, len(ROWS) + 1))


def test_a_seed_fixes_the_problems():
    assert make_problems(41, 40, TAUGHT) == ROWS[:40]
    assert make_problems(42, 40, TAUGHT) != ROWS[:40]


def test_a_row_of_one_loophole_has_the_same_problems_all_with_it():
    problems = [parse_problem(row, "row") for row in ROWS]
    one = with_modes(problems, ["run_tests"], TAUGHT)
    assert {problem.mode for problem in one} == {"run_tests"} and len(one) == len(problems)
    assert [(p.id, p.tests, p.canonical) for p in one] == [(p.id, p.tests, p.canonical) for p in problems]
    assert with_modes(problems, TAUGHT, TAUGHT) == problems, "the pool's own stay where the file has them"
    two = with_modes(problems, TAUGHT[:2], TAUGHT)
    assert Counter(problem.mode for problem in two) == dict.fromkeys(TAUGHT[:2], len(problems) // 2)
