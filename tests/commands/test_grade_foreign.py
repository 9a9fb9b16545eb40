"""`projected-grpo grade` on rows of other benchmarks, and what it says of rows that fail."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from projected_grpo.cli import main

MBPP = {
    "task_id": 3,
    "text": "Add 1.",
    "code": "def inc(n):\n    return n + 1",
    "test_list": ["assert inc(1) == 2"],
}
HUMANEVAL = {
    "task_id": "Mine/0",
    "prompt": "def half(n):\n",
    "entry_point": "half",
    "canonical_solution": "    return n / 2\n",
    "test": "def check(candidate):\n    assert candidate(3) == 1.5\n",
}
LEETCODE = {
    "id": "own",
    "func_name": "Solution().f",
    "gt_answer": ["assert Solution().f(x = 1) == 2", "assert Solution().f(x = 5) == 6"],
    "canonical_solution": "class Solution:\n    def f(self, x):\n        return x + 1\n",
    "mode": "gt_only",
}
PLAIN = {
    "id": "plain",
    "func_name": "twice",
    "gt_answer": ["assert twice(2) == 4"],
    "canonical_solution": "twice = lambda n: 2 * n",
}


TWICE = "class Solution:\n    def twice(self, x):\n        return 2 * x\n"


def fenced(code):
    return f"```python\n{code}\n```"


def grade(tmp_path, capsys, problems, rows, *arguments, out="out.jsonl"):
    given, made = (tmp_path / "p.jsonl", tmp_path / "c.jsonl"), tmp_path / out
    for path, content in zip(given, (problems, rows), strict=True):
        path.write_text("".join(json.dumps(row) + "\n" for row in content))
    status = main(["grade", *map(str, given), "--out", str(made), *arguments])
    found = [json.loads(line) for line in made.read_text().splitlines()] if made.exists() else None
    return status, found, capsys.readouterr().err


def test_rows_of_all_formats_in_one_file(tmp_path, capsys):
    answers = {
        3: ["def inc(n):\n    return -~n", "def inc(n):\n    return n"],
        "Mine/0": ["def half(n):\n    return n * .5", "def half(n):\n    return n // 2"],
        "own": [
            "class Solution:\n    def f(self, x):\n        return 1 + x",
            "class Solution:\n    def f(self, x):\n        return 2",
        ],
        "plain": ["def twice(n):\n    return n + n", "def twice(n):\n    return n ** 3"],
    }
    keys = {3: "task_id", "Mine/0": "task_id", "own": "problem_id", "plain": "problem_id"}
    rows = [
        {keys[one]: one, "completion": fenced(code), "n": n}
        for n in (0, 1)
        for one in answers
        for code in [answers[one][n]]
    ]
    status, found, said = grade(tmp_path, capsys, [MBPP, HUMANEVAL, LEETCODE, PLAIN], rows)
    assert status == 0 and "warning" not in said, said
    assert [row["gt_pass"] for row in found] == [True] * 4 + [False] * 4
    assert [row["n"] for row in found] == [0] * 4 + [1] * 4
    assert all(row["mode"] == "gt_only" and row["honest"] is row["gt_pass"] for row in found)
    assert [row["reason"] for row in found] == [None] * 4 + [
        "AssertionError; assert inc(1) == 2: inc(1) gave 1",
        "AssertionError; assert candidate(3) == 1.5: half(3) gave 1",
        "test 2 of 2: f(x=5) gave 2, not 6",
        "AssertionError; assert twice(2) == 4: twice(2) gave 8",
    ]


@pytest.mark.parametrize(
    "code, error, reason",
    [
        (
            "class Solution:\n    def f(self, x):\n        return x + y",
            "exception",
            "NameError: name 'y' is not defined (line 3); test 1 of 2: f(x=1)",
        ),
        (
            "class Solution:\n    def f(self, x):\n        return [x",
            "syntax",
            "SyntaxError: '[' was never closed (line 3)",
        ),
        (
            "import nothing_of_this_name",
            "exception",
            "ModuleNotFoundError: No module named 'nothing_of_this_name' (line 1)",
        ),
        (
            "class Solution:\n    def f(self, x):\n        return object()",
            None,
            "test 1 of 2: f(x=1) gave an object that is no plain value, not 2",
        ),
        (
            "class Solution:\n    def f(self, x):\n        return 2 if x == 1 else None",
            None,
            "test 2 of 2: f(x=5) gave None, not 6",
        ),
    ],
)
def test_a_row_says_why_it_failed(tmp_path, capsys, code, error, reason):
    _, (found,), _ = grade(tmp_path, capsys, [LEETCODE], [{"problem_id": "own", "completion": fenced(code)}])
    assert (found["error"], found["reason"]) == (error, reason)


@pytest.mark.parametrize(
    "completion, reason",
    [
        ("", "no ```python fence: the completion is empty"),
        ("def half(n): return n / 2", "no ```python fence"),
        ("```\nx\n```", "no ```python fence: one of another word, or of none, does not count"),
        ("<think>\n```python\nx\n```", "no ```python fence: the only one stands in thinking"),
    ],
)
@pytest.mark.parametrize("problem", [LEETCODE, HUMANEVAL], ids=["plain", "foreign"])
def test_a_missing_fence_is_said_and_when_all_rows_fail_alike(tmp_path, capsys, completion, reason, problem):
    rows = [{"problem_id": problem.get("id", "Mine/0"), "completion": completion}] * 3
    _, found, said = grade(tmp_path, capsys, [problem], rows)
    assert {(row["fmt_ok"], row["error"], row["reason"]) for row in found} == {(False, "format", reason)}
    assert f"warning: all 3 completions fail alike: {reason}\n" in said
    _, _, said = grade(tmp_path, capsys, [problem], rows[:1])
    assert "alike" not in said


def test_problems_whose_own_solution_fails_or_that_are_left_out_are_named(tmp_path, capsys):
    problems = [
        MBPP | {"code": "def inc(n):\n    return n"},
        LEETCODE | {"canonical_solution": "class Solution:\n    def f(self, x):\n        return 2\n"},
        HUMANEVAL | {"test": "def check(candidate):\n    assert eval(str(candidate(3))) == 1.5\n"},
        MBPP | {"task_id": "not asked for", "code": "def inc(n):\n    return n"},
    ]
    rows = [{"problem_id": one, "completion": fenced("x = 1")} for one in (3, "own", "Mine/0")]
    _, found, said = grade(tmp_path, capsys, problems, rows)
    assert (
        "fails, so that their verdicts say little (2): own: test 2 of 2: f(x=5) gave 2, not 6; 3: AssertionError"
        in said
    )
    assert "warning: problems left out, gt_pass null (1): Mine/0: its check uses eval" in said
    assert "not asked for" not in said
    assert [row["gt_pass"] for row in found] == [False, False, None]


def test_the_example_of_the_docs_prints_what_they_say(tmp_path):
    text = (Path(__file__).parents[2] / "docs/grading.md").read_text().split("## Rows of other benchmarks")[1]
    command, printed = text.split("```bash\n")[1].split("\n```\n\nIt prints, in about two seconds:\n\n```\n")
    command = command.replace("projected-grpo", f"{sys.executable} -m projected_grpo.cli")
    done = subprocess.run(["bash", "-ec", command], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == printed.split("\n```\n")[0] + "\n", done.stderr


def test_a_missing_folder_of_out_is_said_before_anything_is_graded(tmp_path, capsys):
    row = {"problem_id": 3, "completion": fenced("x")}
    status, found, said = grade(tmp_path, capsys, [MBPP], [row], out="no/such/out.jsonl")
    assert status == 2 and found is None and "sandbox" not in said
    assert (
        said
        == f"projected-grpo: --out {tmp_path}/no/such/out.jsonl: there is no folder {tmp_path}/no/such, make it first\n"
    )
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(
    "problem, row, arguments, message",
    [
        (
            MBPP,
            {"mode": "sentinel"},
            [],
            "c.jsonl:1: mode 'sentinel' needs a class Solution, and problem 3 asks for a function; allowed: ",
        ),
        (MBPP, {"problem_id": 4}, [], "c.jsonl:1: problem_id 4 is not in "),
        (MBPP, {"mode": 0}, [], "c.jsonl:1: key 'mode' must be a text; allowed: "),
        (MBPP | {"mode": "exit_cod"}, {}, [], "p.jsonl:1: unknown mode 'exit_cod', allowed: "),
        (MBPP, {}, ["--format", "humaneval"], "p.jsonl:1: key 'prompt' is missing"),
    ],
)
def test_what_cannot_be_graded_is_one_line(tmp_path, capsys, problem, row, arguments, message):
    row = {"problem_id": 3, "completion": fenced("x"), **row}
    status, found, said = grade(tmp_path, capsys, [problem], [row], *arguments)
    assert status == 2 and found is None and message in said.strip().splitlines()[-1]


def test_a_problem_of_any_format_has_a_mode_of_its_own(tmp_path, capsys):
    problems = [MBPP | {"mode": "exit_code"}, HUMANEVAL | {"mode": "exit_code"}]
    rows = [{"problem_id": one, "completion": fenced("raise SystemExit(0)")} for one in (3, "Mine/0")]
    _, found, _ = grade(tmp_path, capsys, problems, rows)
    assert [(row["mode"], row["exploited"]) for row in found] == [("exit_code", True)] * 2


def test_a_row_whose_check_cannot_be_read_is_left_out_alone(tmp_path, capsys):
    broken = {"assert inc(": "the check is no valid Python", "": "key 'test_list' must be a list of asserts"}
    problems = [MBPP, *(MBPP | {"task_id": text, "test_list": [text] if text else []} for text in broken)]
    rows = [{"problem_id": one, "completion": fenced(MBPP["code"])} for one in (3, *broken)]
    status, found, said = grade(tmp_path, capsys, problems, rows)
    assert status == 0 and [row["gt_pass"] for row in found] == [True, None, None]
    for row, why in zip(found[1:], broken.values(), strict=True):
        assert row["error"] == "unjudged" and why in row["reason"] and why in said


@pytest.mark.parametrize(
    "problem",
    [
        {"prompt": "import math\n", "entry_point": "Solution().twice", "completion": TWICE}
        | {"test": "def check(candidate):\n    assert candidate(x=2) == 4\n"},
        {"text": "Double x.", "code": TWICE, "test_list": ["assert Solution().twice(2) == 4"]},
    ],
)
def test_a_class_stands_in_rows_of_every_format(tmp_path, capsys, problem):
    answers = [TWICE, TWICE.replace("2 * x", "x"), "def twice(self, x):\n    return 2 * x\n"]
    rows = [{"problem_id": 1, "completion": fenced(answer)} for answer in answers]
    _, found, said = grade(tmp_path, capsys, [problem | {"task_id": 1}], rows)
    assert [row["gt_pass"] for row in found] == [True, False, False] and "warning" not in said


def test_a_function_where_a_class_is_asked_for_is_told_so(tmp_path, capsys):
    own = "class Solution:\n    def f(self, x):\n        return {}['Solution']\n"
    rows = [{"problem_id": "own", "completion": fenced(one)} for one in ("def f(x):\n    return x", own)]
    _, found, _ = grade(tmp_path, capsys, [LEETCODE], rows)
    assert found[0]["reason"].startswith("it defines no class Solution; ")
    assert found[1]["reason"].startswith("KeyError: Solution (line 3); ")


def test_a_line_counts_from_the_answer_where_it_goes_on_from_the_prompt(tmp_path, capsys):
    answers = ["    return 1 / 0\n", HUMANEVAL["prompt"] + "    return 1 / 0\n"]
    rows = [{"problem_id": "Mine/0", "completion": f"```python\n{one}```"} for one in answers]
    _, found, _ = grade(tmp_path, capsys, [HUMANEVAL], rows)
    lines = (1, HUMANEVAL["prompt"].count("\n") + 1)
    assert [f"(line {line})" in row["reason"] for row, line in zip(found, lines, strict=True)] == [True, True]


def test_a_cache_is_never_another_file(tmp_path, capsys):
    row = {"problem_id": 3, "completion": fenced("x")}
    (tmp_path / "notes.csv").write_text("mine")
    for name in ("p.jsonl", "c.jsonl", "notes.csv"):
        status, found, said = grade(tmp_path, capsys, [MBPP], [row], "--cache", str(tmp_path / name))
        assert status == 2 and found is None and f"--cache {tmp_path / name}: is " in said
    assert (tmp_path / "notes.csv").read_text() == "mine" and "task_id" in (tmp_path / "p.jsonl").read_text()


def test_a_folder_that_takes_no_file_is_one_line(tmp_path, capsys, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied", "v.jsonl")

    monkeypatch.setattr("projected_grpo.commands.grade.atomic", refuse)
    status, _, said = grade(tmp_path, capsys, [MBPP], [{"problem_id": 3, "completion": fenced("x")}])
    assert status == 2 and said.strip().splitlines()[-1] == "projected-grpo: v.jsonl: Permission denied"


@pytest.mark.parametrize(
    "problem, head", [(MBPP, "def inc(n):"), (LEETCODE, "class Solution:\n  def f(self, x):")]
)
def test_memory_and_an_exit_are_named_the_same_of_a_function_and_of_a_class(problem, head, tmp_path, capsys):
    bodies = ["    [0] * 10**10", "    raise SystemExit(3)", "    1 / 0", "    raise KeyboardInterrupt"]
    key = problem.get("task_id", "own")
    rows = [{"problem_id": key, "completion": fenced(f"{head}\n{body}")} for body in bodies]
    _, found, _ = grade(tmp_path, capsys, [problem], rows)
    assert [row["error"] for row in found] == ["memory", "exit", "exception", "exception"]
    line = 1 + len(head.splitlines())
    names = ["MemoryError", "SystemExit: 3", "ZeroDivisionError: division by zero", "KeyboardInterrupt"]
    for row, name in zip(found, names, strict=True):
        assert row["reason"].startswith(f"{name} (line {line})")


def test_a_row_whose_asserts_alone_name_the_method_has_every_mode(tmp_path, capsys):
    bare = {key: value for key, value in LEETCODE.items() if key not in ("func_name", "mode")}
    equal = "class Any:\n    def __eq__(self, other): return True\n"
    code = fenced(f"{equal}class Solution:\n    def f(self, x):\n        return Any()")
    row = {"problem_id": "own", "mode": "eq_override", "completion": code}
    status, found, said = grade(tmp_path, capsys, [bare], [row])
    assert (status, found[0]["channel"], found[0]["gt_pass"]) == (0, True, False), said
    both = bare | {"gt_answer": [*bare["gt_answer"], "assert Solution().g(1) == 1"]}
    status, found, said = grade(tmp_path, capsys, [both], [row])
    assert status == 2 and "needs asserts" in said
