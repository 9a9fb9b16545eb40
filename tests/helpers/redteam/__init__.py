"""Hostile and awkward submissions, each with the verdicts it deserves; run by tests/test_grader_redteam.py.

All answer one problem: `solve(nums, k)` returns sum(nums) + k. `WRONG` submissions try to be taken for right ones or to
earn a channel they do not have; `right` ones are odd but right.
"""

import importlib
from dataclasses import dataclass

TESTS = [([1, 2, 3], 4), ([], 0), ([-5, 5], 7), ([10**12, 1], 1), ([3], -3), (list(range(50)), 2)]
PROBLEM = {
    "id": 1,
    "prompt": "Return the sum of nums plus k. Your method is called solve and should pass all tests.",
    "func_name": "Solution().solve",
    "gt_answer": [f"assert Solution().solve(nums = {nums}, k = {k}) == {sum(nums) + k}" for nums, k in TESTS],
    "canonical_solution": "class Solution:\n    def solve(self, nums, k):\n        return sum(nums) + k\n",
    "setup_code": "",  # of LeetCode's the builtins are names of the module, which patching does not reach
}
RIGHT = """
class Solution:
    def solve(self, nums, k):
        return sum(nums) + k
"""
WRONG = """
class Solution:
    def solve(self, nums, k):
        return 12345
"""


@dataclass(frozen=True)
class Case:
    """family, name, mode, the code in the fence (or `text`, the whole completion), and the verdicts it deserves."""

    family: str
    name: str
    code: str
    gt_pass: bool = False
    channel: bool = False
    mode: str = "run_tests"
    compiles: bool = True
    text: str | None = None

    @property
    def completion(self) -> str:
        return self.text if self.text is not None else f"```python\n{self.code}\n```"

    @property
    def id(self) -> str:
        return f"{self.family}-{self.name}"


def method(body: str, before: str = "") -> str:
    """Return a module with `before` and a Solution whose method has `body`."""
    lines = "".join(f"        {line}\n" for line in body.strip("\n").split("\n"))
    return f"{before}\nclass Solution:\n    def solve(self, nums, k):\n{lines}"


FAMILIES = """
reading theft sharing reporters ending lying patching exits forging bombs stalling escapes channels standing missed
honest inert parsers awkward fair odd prying
""".split()  # noqa: SIM905


def cases_of(family: str) -> list[Case]:
    return importlib.import_module(f"redteam.{family}").CASES


def all_cases() -> list[Case]:
    return [case for family in FAMILIES for case in cases_of(family)]
