"""Why a submission failed: told from what the exception holds, believed in nothing; no submitted code runs for it."""

import contextlib
import marshal

import pytest

from projected_grpo.sandbox import reasons
from projected_grpo.sandbox.levels import WEAK
from projected_grpo.sandbox.pool import Pool
from projected_grpo.sandbox.worker import check, job

CODES = {
    "class Solution:\n    def f(self, x):\n        return self.g(x)\n    def g(self, x):\n        return [][x]": (
        "IndexError",
        "list index out of range",
        5,
    ),
    "import nothing_of_this_name": ("ModuleNotFoundError", "No module named 'nothing_of_this_name'", 1),
    "x = 1\nclass Solution(:": ("SyntaxError", "invalid syntax", 2),
    "class E(Exception):\n    def __str__(self): print('never'); return 'never'\nraise E({}, 'told', 2)": (
        "E",
        "told, 2",
        3,
    ),
    "class Solution:\n    def f(self, x):\n        assert x == 2, 'two'": ("AssertionError", "two", 3),
    "class Solution:\n    def f(self, x):\n        return x": None,
}


def test_reasons_name_type_message_and_line():
    asked = check("calls", {"method": "f", "tests": [marshal.dumps(((1,), {}))]}, answers=1)
    with contextlib.closing(Pool(1, (WEAK,))) as pool:
        seen = dict(pool.run([(code, job("", code, [asked])) for code in CODES]))
    assert {code: one[0]["reason"] for code, one in seen.items()} == CODES


@pytest.mark.parametrize(
    "text",
    [b"", b"[", b"1", b'["t"]', b'["t",1,"a",2]', b'["t","a","b","c"]', b"[" * 5000, b'"' + b"x" * 9000],
)
def test_a_forged_reason_is_none(text):
    assert reasons.read([b"c", b"rexception\n" + text]) is None
