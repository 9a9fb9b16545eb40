"""A problem: what is asked, how it is tested, and which lever its prompt names."""

from dataclasses import dataclass, field

from projected_grpo.environment.asserts import Test

# What stands before an answer to a row whose `setup_code` is empty: a generated one.
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

# What LeetCode itself puts before an answer: for rows that do not say. Where a module and what it holds share a name,
# the module stands, as there; `bisect` can be called, too. Builtins come after them: pow, abs, open stay what they are.
LEETCODE = """\
from typing import *
from string import *
from re import *
from datetime import *
from collections import *
from heapq import *
from bisect import *
from copy import *
from math import *
from random import *
from statistics import *
from itertools import *
from functools import *
from operator import *
from io import *
from sys import *
from json import *
from builtins import *
import string, re, datetime, collections, heapq, bisect, copy, math, random, statistics, itertools, functools
import operator, io, sys, json, array

class _Bisect(type(bisect)):
    def __call__(self, *args, **kwargs):
        return self.bisect(*args, **kwargs)

bisect.__class__ = _Bisect

class ListNode:
    def __init__(self, val=0, next=None):
        self.val = val
        self.next = next

class TreeNode:
    def __init__(self, val=0, left=None, right=None):
        self.val = val
        self.left = left
        self.right = right
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
