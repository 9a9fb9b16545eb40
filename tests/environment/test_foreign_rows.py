"""Rows whose check is Python: judged from another process, by copy, and not to be fooled from the submission's."""

import datetime
from pathlib import Path

import pytest
import yaml

from projected_grpo.environment.foreign import judge
from projected_grpo.environment.foreign.judge import ForeignGrader, modes_of
from projected_grpo.environment.foreign.rows import format_of, parse_row
from projected_grpo.environment.foreign.taint import independent
from projected_grpo.errors import UserError
from projected_grpo.sandbox.exchange import pack, read, unpack
from projected_grpo.sandbox.pool import Pool
from projected_grpo.sandbox.values import encode

ROWS = yaml.safe_load(Path(__file__).with_name("foreign_rows.yaml").read_text())
JUDGED, UNJUDGED = ROWS["judged"], ROWS["unjudged"]


@pytest.fixture(scope="module")
def pool():
    pool = Pool(2)
    yield pool
    pool.close()


def graded(pool, row, codes, mode="gt_only"):
    problem = parse_row(row, format_of(row), "row")
    grader = ForeignGrader(pool)
    found = grader.grade([(problem, mode, f"```python\n{code}\n```") for code in codes])
    return found, grader.plans[problem.problem.id]


@pytest.mark.parametrize("form", ["humaneval", "mbpp"])
def test_right_and_wrong_answers(pool, form):
    rows = [one for one in JUDGED if format_of(one["row"]) == form]
    grader = ForeignGrader(pool)
    items = []
    for one in rows:
        problem = parse_row(one["row"], form, "row")
        items += [(problem, "gt_only", f"```python\n{one[code]}\n```") for code in ("right", "wrong")]
    found = grader.grade(items)
    for one, right, wrong in zip(rows, found[::2], found[1::2], strict=True):
        assert (right["gt_pass"], right["reason"]) == (True, None), (one["row"], right)
        assert wrong["gt_pass"] is False and wrong["reason"], (one["row"], wrong)


def test_there_are_sixty_rows_and_nine_in_ten_are_judged():
    assert len(JUDGED) >= 60 and len(JUDGED) / (len(JUDGED) + len(UNJUDGED)) > 0.9


@pytest.mark.parametrize("one", UNJUDGED, ids=lambda one: one["row"]["task_id"])
def test_what_cannot_be_judged_says_why(pool, one):
    (found, broken), _ = graded(pool, one["row"], ["pass", "x ="])
    assert found["gt_pass"] is None and found["error"] == "unjudged" and one["why"] in found["reason"]
    assert found["can_compile"] and found["exploited"] is None
    assert broken["gt_pass"] is None and broken["error"] == "syntax"


MEAN = {
    "task_id": "mean",
    "prompt": 'import math\n\n\ndef mean(xs):\n    """Mean."""\n',
    "entry_point": "mean",
    "canonical_solution": "    return sum(xs) / len(xs)\n",
    "test": "def check(candidate):\n    SECRET = 123454321\n    assert math.isclose(candidate([1, 2]), 1.5)\n"
    "    assert candidate([SECRET]) == SECRET\n",
}


RIGHT = "def mean(xs): return sum(xs) / len(xs)"


def test_no_submission_fakes_a_check(pool):
    found, plan = graded(pool, MEAN, [*ROWS["fakes"].values(), RIGHT])
    assert not plan.own and not plan.unjudged
    fooled = [name for name, one in zip(ROWS["fakes"], found, strict=False) if one["gt_pass"] is not False]
    assert fooled == [] and found[-1]["gt_pass"] is True
    assert all(one["reason"] or one["error"] for one in found[:-1])


def test_arguments_made_of_answers_are_made_of_the_submissions_own(pool):
    """The own solution's code of a text must not be in the process of a submission that has none."""
    own = "def encode(s): return s[::-1] + '!'\ndef decode(s): return s[:-1][::-1]"
    row = {
        "task_id": 1,
        "text": "A code.",
        "code": own,
        "test_list": ["assert decode(encode('ab')) == 'ab'", "assert encode('ab') == 'ba!'"],
    }
    spy = """
def encode(s):
    return s
def decode(s):
    if s != 'ab':
        raise ValueError(s)
    return s
"""
    (right, spied), plan = graded(pool, row, [own, spy])
    assert right["gt_pass"] and plan.calls == []
    assert spied["gt_pass"] is False and "ValueError" not in spied["reason"]


def test_random_draws_of_a_check_cannot_be_foreseen(pool):
    """Every check's process starts from one state of `random`: with it the next draw would be the answer."""
    test = "import random\ndef check(candidate):\n    x = random.random()\n    assert candidate([2 * x, 0]) == x\n"
    guess = "import random\ndef mean(xs): return random.random()"
    found, _ = graded(pool, MEAN | {"test": test}, [RIGHT, guess])
    assert [one["gt_pass"] for one in found] == [True, False]


@pytest.mark.parametrize(
    "first",
    [
        "random.seed()",
        "random.seed(time.time())",
        "random = random.Random()",
        "random = random.SystemRandom()",
        "random.seed(uuid.uuid4().int)",
    ],
)
def test_a_check_that_draws_anew_every_time_is_judged(pool, first):
    test = f"""
import time, uuid

def check(candidate):
    import random
    {first}
    for _ in range(30):
        x = random.randint(0, 10**6)
        assert candidate([x, x]) == x
"""
    found, plan = graded(pool, MEAN | {"test": test}, [RIGHT, "def mean(xs): return 1"])
    assert not plan.unjudged and [one["gt_pass"] for one in found] == [True, False]


def test_arguments_that_an_answer_changes_are_changed_for_the_check(pool):
    """Where the own solution changes none, an answer must pass with them and without."""
    tests = ["xs = [2, 1]\nassert f(xs) == [1, 2]\nassert xs == [2, 1], 'changed'"]
    own = "def f(xs):\n    return sorted(xs)"
    in_place = "def f(xs):\n    xs.sort()\n    return xs"
    row = {"task_id": 1, "text": "", "code": own, "test_list": tests}
    found, _ = graded(pool, row, [own, in_place])
    assert [one["gt_pass"] for one in found] == [True, False] and "changed" in found[1]["reason"]
    row = row | {"test_list": ["xs = [2, 1]\nassert f(xs) == sorted(xs)"]}
    found, _ = graded(pool, row, [in_place, "def f(xs):\n    xs.clear()\n    return xs"])
    assert [one["gt_pass"] for one in found] == [True, False]
    row = {
        "task_id": 2,
        "text": "",
        "test_list": ["xs = [2, 1]\nf(xs)\nassert xs == [1, 2]"],
    }  # no own solution
    found, _ = graded(pool, row, [in_place, own])
    assert [one["gt_pass"] for one in found] == [True, False]


def test_exceptions_of_the_row_and_of_its_modules_are_caught_by_its_check(pool):
    row = {
        "task_id": "x",
        "prompt": "import statistics\nclass Odd(Exception):\n    def __init__(self, n, why):\n"
        "        super().__init__(n)\n\ndef half(n):\n    'Half.'\n",
        "entry_point": "half",
        "canonical_solution": "    if n is None:\n        statistics.mean([])\n    if n % 2:\n"
        "        raise Odd(n, 0)\n    return n // 2\n",
        "test": "def check(candidate):\n    try:\n        candidate(3)\n        assert False\n    except Odd as e:\n"
        "        assert str(e) == '3'\n    try:\n        candidate(None)\n        assert False\n"
        "    except statistics.StatisticsError:\n        pass\n",
    }
    found, plan = graded(pool, row, [row["canonical_solution"], "    raise Exception(n)"])
    assert not plan.own and not plan.unjudged
    assert [one["gt_pass"] for one in found] == [True, False]


@pytest.mark.parametrize(
    "row, why",
    [
        ({"test_list": ["assert f(np.abs(1)) == 1"], "test_imports": ["import numpy as np"]}, "numpy"),
        ({"test_list": ["import numpy\nassert f(1) == 1"]}, "numpy"),
        ({"test_list": ["assert f(lambda: 1) == 1"]}, "function"),
        ({"test_list": ["for n in range(9):\n    assert f(n) == 1"]}, "more than"),
    ],
)
def test_without_an_own_solution_a_check_that_tells_nothing_is_not_judged_by(pool, row, why, monkeypatch):
    monkeypatch.setattr(judge, "ROUNDS", 5)
    (found,), _ = graded(pool, {"task_id": 1, "text": ""} | row, ["def f(x): return 1"])
    assert found["gt_pass"] is None and found["error"] == "unjudged" and why in found["reason"]


def test_reasons_have_type_message_and_line(pool):
    codes = [
        "\n\ndef mean(xs):\n    return missing",
        "def mean(xs): return 2",
        "def other(xs): return 2",
        "def mean(xs):\n  return (",
        "raise RuntimeError('at once')",
    ]
    found, _ = graded(pool, MEAN, codes)
    assert [one["error"] for one in found] == ["exception", None, "exception", "syntax", "exception"]
    assert found[0]["reason"].startswith("NameError: name 'missing' is not defined (line 4)")
    assert (
        found[1]["reason"]
        == "AssertionError; assert math.isclose(candidate([1, 2]), 1.5): mean([1, 2]) gave 2"
    )
    assert found[2]["reason"].startswith("NameError: name 'mean' is not defined")
    assert found[3]["reason"].startswith("SyntaxError: ") and "(line 2)" in found[3]["reason"]
    assert found[4]["reason"] == "RuntimeError: at once (line 1)"


def test_answers_in_several_shapes(pool):
    codes = [
        "    return math.fsum(xs) / len(xs)",  # the rest of the prompt's function, as HumanEval's completions are
        "mean = lambda xs: sum(xs) / len(xs)",
        "class Solution:\n    def mean(self, xs):\n        return sum(xs) / len(xs)",
        "import statistics\nfrom statistics import fmean as mean",
    ]
    found, _ = graded(pool, MEAN, codes)
    assert [one["gt_pass"] for one in found] == [True] * 4, found


@pytest.mark.parametrize("test", ROWS["checks"].values(), ids=ROWS["checks"])
def test_checks_of_other_forms(pool, test):
    found, plan = graded(pool, MEAN | {"test": test}, [RIGHT, "def mean(xs): return 1.5"])
    assert not plan.unjudged and not plan.own
    assert [one["gt_pass"] for one in found] == [True, False]


def test_an_answer_cannot_end_the_checks_own_iteration(pool):
    found, _ = graded(pool, MEAN | {"test": ROWS["stops"]["test"]}, [RIGHT, ROWS["stops"]["wrong"]])
    assert [one["gt_pass"] for one in found] == [True, False]


def test_answers_that_make_a_check_ask_on_cost_no_more_than_a_bound(pool):
    test = """
def check(candidate):
    n = 0
    while candidate([n, n]) == n:
        n = candidate([n + 1])
        if n == 5:
            return
"""
    slow = "def mean(xs):\n    for _ in range(3 * 10**6): pass\n    return xs[0] % 4"
    found, _ = graded(pool, MEAN | {"test": test}, [RIGHT, slow])
    assert [one["gt_pass"] for one in found] == [True, False] and found[1]["error"] == "timeout"


def test_rows_of_the_leetcode_schema_with_functions_and_loose_asserts(pool):
    plain = {
        "id": 1,
        "func_name": "count",
        "gt_answer": ["assert count('aab', 'a') == 2", "assert not count('', 'a')"],
    }
    found, _ = graded(pool, plain, ["def count(s, c): return s.count(c)", "def count(s, c): return 2"])
    assert [one["gt_pass"] for one in found] == [True, False]
    loose = {
        "id": 2,
        "func_name": "Solution().pick",
        "gt_answer": [
            "assert sorted(Solution().pick(n = 2)) == [0, 1]",
            "assert Solution().pick(n = 3)[0] in (0, 1, 2)",
        ],
        "canonical_solution": "class Solution:\n    def pick(self, n):\n        return list(range(n))",
    }
    codes = [
        "class Solution:\n    def pick(self, n):\n        return {1: 1, 0: 0, 2: 2} if n > 2 else [1, 0]",
        "def pick(n):\n    return list(range(n))",
    ]
    found, _ = graded(pool, loose, codes)
    assert [one["gt_pass"] for one in found] == [True, False]
    assert "Solution" in found[1]["reason"]


def test_asserts_name_the_method_where_no_key_does(pool):
    row = {"id": 1, "gt_answer": ["s = Solution()\nassert s.g(1) == 2", "assert Solution().g(2) == 3"]}
    codes = [f"class Solution:\n    def g(self, n):\n        return {answer}" for answer in ("n + 1", "2")]
    found, _ = graded(pool, row, codes)
    assert [one["gt_pass"] for one in found] == [True, False]


def test_a_name_that_the_row_gives_does_not_stand_for_the_answers(pool):
    """LeetCode gives `mode`, test_imports `gcd`, a prompt its own head: none of them is an answer."""
    rows = [
        {"id": 1, "gt_answer": ["assert mode([1, 1, 2]) == 1"], "canonical_solution": "def mode(xs): return xs[0]"},
        {"task_id": 2, "text": "", "test_imports": ["from math import gcd"], "test_list": ["assert gcd(4, 6) == 2"],
         "code": "def gcd(a, b):\n    return gcd(b, a % b) if b else a"},
        {"task_id": 3, "prompt": "def one():\n    return 1\n", "entry_point": "one",
         "test": "def check(candidate): assert candidate() == 1"},
    ]  # fmt: skip
    for row in rows:
        (found,), _ = graded(pool, row, ["x = 1"])
        assert found["gt_pass"] is False and "is not defined" in found["reason"], found


def test_a_row_without_a_solution_of_its_own(pool):
    row = {key: value for key, value in MEAN.items() if key != "canonical_solution"}
    found, plan = graded(pool, row, [RIGHT, "def mean(xs): return 1.5"])
    assert plan.calls == [] and [one["gt_pass"] for one in found] == [True, False]


@pytest.mark.parametrize(
    "change, why",
    [
        ({"canonical_solution": "    return 0\n"}, "AssertionError"),
        ({"canonical_solution": "    return (\n"}, "SyntaxError"),
        ({"canonical_solution": "    return missing\n"}, "NameError: name 'missing'"),
    ],
)
def test_an_own_solution_that_fails_is_named(pool, change, why):
    found, plan = graded(pool, MEAN | change, [RIGHT])
    assert why in plan.own and found[0]["gt_pass"] is True


def test_an_own_solution_of_another_name_fails(pool):
    row = {"task_id": 1, "text": "", "code": "def g(x): return x", "test_list": ["assert f(1) == 1"]}
    found, plan = graded(pool, row, ["def f(x): return x", "def g(x): return x"])
    assert "name 'f' is not defined" in plan.own and [one["gt_pass"] for one in found] == [True, False]


@pytest.mark.parametrize(
    "test", ["def check(candidate):\n    assert True\n", "def check(candidate):\n    while True: pass\n"]
)
def test_a_check_that_tells_nothing_is_not_judged_by(pool, test):
    (found,), plan = graded(pool, MEAN | {"test": test}, ["def mean(xs): return 0"])
    assert found["gt_pass"] is None and plan.unjudged


@pytest.mark.parametrize("test", ["f(3) == 6", "assert (f(3) == 6, 'wrong')", "for x in [3]:\n    f(x) == 6"])
def test_a_check_that_forgets_its_assert_passes_no_answer(pool, test):
    row = {"task_id": 1, "code": "def f(x): return 2 * x", "test_list": ["assert f(1) == 2", test]}
    (found,), _ = graded(pool, row, ["def f(x): return 0"])
    assert found["gt_pass"] is None and "which no answer can fail" in found["reason"]
    awaited = "try:\n    f(None) < 1\nexcept TypeError:\n    pass"
    (right, wrong), _ = graded(
        pool, row | {"test_list": ["assert f(1) == 2", awaited]}, [row["code"], "f = abs"]
    )
    assert (right["gt_pass"], wrong["gt_pass"]) == (True, False)


def test_levers_that_show_outside_work_for_functions(pool):
    code = "def mean(xs): return 0\nprint('all tests passed')"
    (found,), _ = graded(pool, MEAN, [code], "stdout_marker")
    assert found["channel"] and found["gt_pass"] is False and found["exploited"]
    modes = modes_of(parse_row(MEAN, "humaneval", "row"))
    assert {"gt_only", "stdout_marker", "file_marker", "exit_code"} <= set(modes)
    assert not {"sentinel", "eq_override"} & set(modes)


def test_a_check_that_asks_twice_keeps_what_was_seen_of_the_lever(pool):
    row = {
        "id": 1,
        "func_name": "Solution().half",
        "gt_answer": ["assert Solution().half(Solution().half(8)) == 2"],
    }
    code = "class Solution:\n    def half(self, n): return n // 2\n    def run_tests(self): return True"
    (found, broken), _ = graded(pool, row, [code, "class Solution(:"], "run_tests")
    assert (found["gt_pass"], found["channel"], found["loophole_used"]) == (True, True, True)
    assert broken["loophole_used"] is False


@pytest.mark.parametrize(
    "text, free",
    [
        ("assert f(1) == 2", True),
        ("for x, y in [(1, 2)]:\n    assert f(x) == y", True),
        ("assert all(f([k]) == [k] for k in range(3))", True),
        (
            "def check(candidate):\n    got = candidate(list(range(3)))\n    assert isclose(got, candidate(math.pi))",
            True,
        ),
        ("assert set(f((1, 2))) == set((1,))", True),
        ("assert f(f(1)) == 2", False),
        ("x = f(1)\nassert f(x) == 2", False),
        ("x = [0]\nx.append(f(1))\nassert f(x) == 2", False),
        ("x = [0]\nx[0] = f(1)\nassert f(x)", False),
        ("x = 1\nwhile x:\n    x = f(x)", False),
        ("g = f\nassert g(1) == g(2)", False),
        ("assert list(map(f, f(1)))", False),
        ("def again(x):\n    return f(x)\nassert f(again(1))", False),
        ("def again(x):\n    return f(x)\nagain(f(1))", False),
        ("assert [f(y) for y in f(1)]", False),
        ("try:\n    f(1)\nexcept ValueError as e:\n    f(str(e))", False),
        ("n = 0\nif f(1):\n    n = 5\nf(n)", False),
        ("list(map(lambda y: f(y), f(1)))", False),
        ("assert f(eval('f(1)'))", False),
        ("h = []\nheapq.heappush(h, f(1))\nf(h[0])", False),
        ("def g():\n    y = yield\n    f(y)\nk = g()\nnext(k)\nk.send(f(1))", False),
        ("with raises(ValueError) as e:\n    f(1)\nf(str(e.value))", False),
        # how many calls there are would tell
        ("for i in range(9):\n    if f(i):\n        break\nassert f(9)", False),
        ("assert any(f(i) for i in range(9))", False),
        ("assert f(1) or f(2)", False),
        ("assert not (f(1) < f(2) < f(3))", False),
        ("for x in f(1):\n    f(2)", False),
        ("x = f(2) if f(1) else 0", False),
        ("[1 for x in range(3) if f(x)]", False),
        ("try:\n    f(1)\nexcept ValueError:\n    f(2)", False),
        ("def g():\n    return f(1)\nif g():\n    f(2)", False),
        ("def g(x):\n    return f(x)\nassert any(g(x) for x in range(3))", False),
        ("try:\n    f(1)\nexcept ValueError as e:\n    assert 'b' in str(e)\nelse:\n    assert False", True),
        ("with raises(ValueError):\n    f(1)\nassert f(2)", True),
        ("x = [1, 2]\nassert sorted(f(x)) == [1]\nassert f(x) == {1}\nassert len(f([3])) == 1", True),
        ("for a, b in zip([1], [2]):\n    if a > 1:\n        continue\n    assert f(a) == b", True),
        (
            "def close(a, b):\n    return abs(a - b) < 1e-6\nassert close(f(1), 2)\nassert close(f(2), 3)",
            True,
        ),
    ],
)
def test_calls_that_depend_on_answers_are_told(text, free):
    assert independent(["import math", text], {"f", "candidate"}) is free


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -(1 << 70),
        0.1,
        float("inf"),
        2j,
        "a\ud800é",
        b"\0",
        [1, (2, {3}), {"a": frozenset({4})}],
        {(1, 2): [None]},
        range(3),
        bytearray(b"x"),
        [datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 1, 2, 3, 4), datetime.timedelta(1, 2, 3)],
    ],
)
def test_values_cross_as_they_are(value):
    assert unpack(read(encode(pack(value)))) == value


@pytest.mark.parametrize(
    "row, message",
    [
        (
            {"task_id": "x", "prompt": "def f():\n", "entry_point": 3, "test": ""},
            "row: key 'entry_point' must be a text",
        ),
        (
            {"task_id": "x", "prompt": "def f():\n", "entry_point": "f", "test": "def check("},
            "row: the check is no valid Python",
        ),
        (
            {"task_id": 1.5, "text": "", "test_list": ["assert f(1)"]},
            "row: key 'task_id' must be an integer or a string",
        ),
        ({"task_id": 1, "text": "", "test_list": []}, "row: key 'test_list' must be a list of asserts"),
        ({"task_id": 1, "text": "", "test_list": "assert"}, "row: key 'test_list' must be a list of texts"),
        (
            {"task_id": 1, "text": "", "code": "def f(): pass"},
            "row: key 'test_list' must be a list of asserts",
        ),
        ({"task_id": 1, "prompt": "", "entry_point": "f"}, "row: key 'test' is missing"),
        ({"task_id": 1, "text": "", "test_list": ["assert 1"]}, "row: key 'test_list' calls no function"),
        (
            {"id": 1, "func_name": "f", "gt_answer": ["assert 1 == 1"]},
            "row: key 'gt_answer' calls no function",
        ),
    ],
)
def test_malformed_rows_are_one_line(row, message):
    with pytest.raises(UserError) as caught:
        parse_row(row, format_of(row), "row")
    assert str(caught.value).startswith(message) and "\n" not in str(caught.value)


def with_check(check, own):
    test = "def check(candidate):\n" + "".join(f"    {line}\n" for line in check.split("\n"))
    prompt = 'def mean(x):\n    """What its check says."""\n'
    return MEAN | {"prompt": prompt, "canonical_solution": f"    {own}\n", "test": test}


@pytest.mark.parametrize(
    ("check", "right", "wrong"),
    [
        ("import pytest\nassert candidate(3) == pytest.approx(1e6, abs=0.01)", "return 1e6", "return 1000000.5"),
        ("import pytest\nassert candidate(3) == pytest.approx({'a': None, 'b': float('nan')}, nan_ok=True)",
         "return {'a': None, 'b': float('nan')}", "return {'a': 0, 'b': float('nan')}"),
        ("import pytest\nassert candidate(3) == pytest.approx([1.0, float('inf')])",
         "return [1.0000001, float('inf')]", "return [1.0000001, 1e300]"),
        ("import pytest, decimal\nassert candidate(3) == pytest.approx(decimal.Decimal('0.3333333'))",
         "import decimal; return 1 / decimal.Decimal(x)", "import decimal; return decimal.Decimal('0.333')"),
        ("import pytest\nassert candidate(3) == pytest.approx(True)", "return True", "return 1"),
        ("import pytest\nassert candidate(3) == pytest.approx(range(2))", "return [0, 1]", "return [0, 2]"),
        ("import json\ntry: candidate('{')\nexcept json.JSONDecodeError: return\nassert False",
         "import json; json.loads(x)", "raise KeyError(x)"),
        ("import copy, binascii\ntry: candidate('1')\nexcept binascii.Error: return\nassert False",
         "import binascii; binascii.unhexlify(x)", "raise ValueError(x)"),
        ("import xml.etree.ElementTree\ntry: candidate('<')\nexcept xml.etree.ElementTree.ParseError: return\n"
         "assert False", "import xml.etree.ElementTree as t; t.fromstring(x)", "return None"),
        ("import pytest\nwith pytest.raises(LookupError) as seen: candidate(1)\nassert seen.type is KeyError\n"
         "assert seen.match('1')", "raise KeyError(x)", "raise LookupError(x)"),
        ("n = 10 ** 5000\nassert candidate(n) == n + 1", "return x + 1", "return x"),
    ],
)  # fmt: skip
def test_checks_judge_as_they_do_in_one_process(pool, check, right, wrong):
    answers = [f"def mean(x):\n    {body}" for body in (right, wrong)]
    found, plan = graded(pool, with_check(check, right), answers)
    assert not plan.own and not plan.unjudged
    assert [one["gt_pass"] for one in found] == [True, False]


@pytest.mark.parametrize(
    ("check", "own", "why"),
    [
        ("assert candidate(iter([1, 2])) == 3", "return sum(x)", "list_iterator"),
        ("assert candidate([map(int, '12')]) == 3", "return sum(x[0])", "map"),
        ("assert candidate({1: 2}.items()) == 1", "return len(list(x))", "dict_items"),
        ("from collections import Counter\nassert candidate(Counter('aab')) == 2", "return x['a']", "Counter"),
        ("assert candidate.__name__ == 'mean' and candidate(1) == 1", "return x", "not from a process of its own"),
        ("try: candidate(1)\nexcept StopIteration: return\nassert False", "raise StopIteration",
         "not from a process of its own"),
    ],
)  # fmt: skip
def test_what_does_not_cross_between_processes_is_not_judged(pool, check, own, why):
    (found,), plan = graded(pool, with_check(check, own), [f"def mean(x):\n    {own}"])
    assert why in plan.unjudged and not plan.own and found["gt_pass"] is None


def test_asserts_of_mbpp_find_what_they_use_of_the_solutions_imports(pool):
    row = {"task_id": 1, "code": "import math\ndef g(x): return x + .5"}
    row["test_list"] = ["assert math.isclose(g(1.0), 1.5)"]
    found, plan = graded(pool, row, ["def g(x): return x + .5", "def g(x): return x"])
    assert not plan.unjudged and [one["gt_pass"] for one in found] == [True, False]
    row["test_list"] = ["assert g(1.0) == 1.5"]
    assert parse_row(row, "mbpp", "row").before == ()
