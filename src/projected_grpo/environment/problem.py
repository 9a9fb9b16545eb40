"""A problem: what is asked, how it is tested, and which lever its prompt names."""

from dataclasses import dataclass, field

from projected_grpo.environment.asserts import Test

# What LeetCode provides implicitly; used by rows that bring no setup code of their own.
SETUP = """\
import bisect, collections, copy, datetime, functools, heapq, itertools, math, operator, random, re, string
from typing import *
from functools import *
from collections import *
from itertools import *
from heapq import *
from bisect import *
from math import inf, gcd, lcm, sqrt, ceil, floor, comb, factorial, isqrt
"""


@dataclass(frozen=True)
class Problem:
    """One problem; `tests` never leave the trusted side whole (only their arguments do).

    id: as in the row (int or str); messages: chat messages, the last one the user's; method: the method's name;
    setup_code: run before the submission; tests: hidden tests; canonical: a right solution or None;
    starter: starter code; mode: its loophole, None before `assign_modes`.
    """

    id: int | str
    messages: tuple[dict[str, str], ...]
    method: str
    setup_code: str = SETUP
    tests: tuple[Test, ...] = field(default=(), repr=False)
    canonical: str | None = field(default=None, repr=False)
    starter: str = ""
    mode: str | None = None

    def __hash__(self) -> int:
        return hash((type(self), self.id, self.method))
