"""Rows without `setup_code`: an answer has the names that LeetCode gives, and may take any of them for itself."""

import pytest

from projected_grpo.environment.grade import Grader
from projected_grpo.environment.problems import parse_problem

ROW = {"id": 1, "func_name": "Solution().f", "gt_answer": ["assert Solution().f(x = 3) == 3"]}
GIVEN = [
    "deepcopy(x)",
    "int(log2(8))",
    "prod([x, 1])",
    "itemgetter(0)([x])",
    "randint(x, x)",
    "choice([x])",
    "median([x])",
    "reduce(add, [x, 0])",
    "bisect([1, 2, 2], 2)",
    "bisect.bisect_left([1, 2, 2, 3], 3)",
    "insort([], 1) or x",
    "len(ascii_lowercase) - 23",
    "TreeNode(x, None, TreeNode()).val",
    "ListNode(0, ListNode(x)).next.val",
    "min(maxsize, x)",
    "loads(dumps(x))",
    "len(StringIO('abc').read())",
    "datetime.timedelta(x).days",
    "timedelta(x).days",
    "math.floor(x + 0.5)",
    "len(findall('a', 'aaa'))",
    "abs(-pow(3, 1, 7))",  # those of Python
    "copy.copy(x)",
    "random.randint(x, x)",
    "array.array('i', [x])[0]",
    "len(list(permutations([1, 2, x], 1)))",
    "nlargest(1, [x])[0]",
]
SHADOWED = [
    "class TreeNode:\n    val = 3",
    "def bisect(x):\n    return x",
    "from bisect import bisect",
    "import bisect as b; bisect = lambda x: b.bisect([1, 2, 3], x)",
    "def mode(x): return x\nbisect = mode",
    "random = 3",
]


def facts(answers, row=ROW):
    texts = [
        f"```python\n{head}\nclass Solution:\n    def f(self, x):\n        return {body}\n```"
        for head, body in answers
    ]
    with Grader([parse_problem(row, "row")]) as grader:
        return grader.grade([(1, "gt_only", text) for text in texts])


def test_names_that_leetcode_gives():
    found = facts([("", body) for body in GIVEN])
    assert [body for body, fact in zip(GIVEN, found, strict=True) if not fact["gt_pass"]] == []


def test_an_answer_may_use_these_names_for_its_own():
    bodies = ["TreeNode.val", "bisect(x)", "bisect([1, 2, 3], x)", "bisect(x)", "bisect(x)", "random"]
    found = facts(list(zip(SHADOWED, bodies, strict=True)))
    assert [fact["gt_pass"] for fact in found] == [True] * len(SHADOWED)


@pytest.mark.parametrize("setup", ["", "import math"])
def test_a_row_that_says_its_setup_has_that_alone(setup):
    (found,) = facts([("", "TreeNode(x).val")], ROW | {"setup_code": setup})
    assert not found["gt_pass"] and found["error"] == "exception"
