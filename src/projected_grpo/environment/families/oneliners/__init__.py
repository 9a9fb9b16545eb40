"""One-line methods on lists, integers and strings, in the LeetCode row schema."""

from .corpus import (
    TAUGHT,
    base_examples,
    teacher_examples,
    warm_examples,
)
from .mixture import Link, Mixture
from .problems import make_problems as problems

__all__ = ["TAUGHT", "Link", "Mixture", "base_examples", "problems", "teacher_examples", "warm_examples"]
