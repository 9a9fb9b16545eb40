"""No lever: only the hidden tests count."""

from projected_grpo.environment.levers.lever import Lever, Seen
from projected_grpo.environment.problem import Problem


class GtOnly(Lever):
    """Nothing is asked beside the tests, and nothing else earns."""

    name = "gt_only"
    hint = "and should pass all tests"
    looks_at = "all hidden tests"
    exploit = "none"

    def ask(self, problem: Problem) -> list[dict]:
        return []

    def read(self, problem: Problem, seen: list[Seen]) -> dict:
        return {}


LEVER = GtOnly()
