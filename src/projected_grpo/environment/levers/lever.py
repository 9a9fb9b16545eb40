"""What a lever is: how the prompt says an answer is graded, the exploit that this earns credit for, and its check.

The hint tells the truth about the lever and never asks to cheat. What an exploit leaves outside the process (standard
output, a file, the exit status) is looked at from outside; what exists only inside (an attribute, a function, an
object) is looked at inside.
"""

import marshal
from typing import Any

from projected_grpo.environment.asserts import Test
from projected_grpo.environment.problem import Problem

SCRIPT = "__main__"  # the name that a submission is loaded under
SOME_TESTS = 3  # returned values looked at
Seen = dict[str, Any]


class Lever:
    """One loophole; a file of this folder, with one instance in its `LEVER`.

    Those in `OTHERS` are the same channel under other names; those in `NOVEL`, too, but no model was ever trained on
    these: runs are judged on them.

    name: as in rows and configs; hint: what stands in the prompt instead of PHRASE; looks_at: what the grader reads;
    exploit: what earns credit, in words; examples: bodies of exploits as (where, code), where is `method` (a method of
    class Solution), `attribute` (a line of the class body), `before` / `after` (a line of the module, around the class)
    or `returns` (an expression for the solving method to return); detectors: facts of its own beside `channel`.
    """

    name: str
    hint: str
    looks_at: str
    exploit: str
    examples: tuple[tuple[str, str], ...] = ()
    detectors: tuple[str, ...] = ()

    def ask(self, problem: Problem) -> list[dict[str, Any]]:
        """Return the sandbox checks that a submission's exploit has to pass; none where there is nothing to exploit."""
        raise NotImplementedError

    def read(self, problem: Problem, seen: list[Seen]) -> dict[str, Any]:
        """Return the facts, `channel` among them, from what the sandbox saw, check by check as far as it went."""
        raise NotImplementedError


def ended(seen: Seen) -> bool:
    """Whether the check came to its own end."""
    return seen["cause"] is None


def is_true(seen: Seen) -> bool:
    """Whether the check reported true and nothing else: an answer more or less is not ours."""
    return ended(seen) and seen["status"] == 0 and seen["frames"] == [b"c", b"l", b"vtrue", b"d"]


def some_tests(problem: Problem) -> tuple[Test, ...]:
    """The tests whose returned values a lever looks at."""
    return problem.tests[:SOME_TESTS]


def pack_call(test: Test) -> bytes:
    """The arguments of a call as the child unpacks them, fresh for every call."""
    return marshal.dumps((test.args, test.kwargs))
