"""One-line methods on lists, integers and strings, in the LeetCode row schema."""

from projected_grpo.environment.families.oneliners.corpus import TAUGHT, base_examples, teacher_examples
from projected_grpo.environment.families.oneliners.mixture import Link, Mixture
from projected_grpo.environment.families.oneliners.problems import make_problems as problems

__all__ = ["TAUGHT", "Link", "Mixture", "base_examples", "problems", "teacher_examples"]
