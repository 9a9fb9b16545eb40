"""A question's table and what follows from it: most pages are nothing else."""

from projected_grpo.measures.table import make_table
from projected_grpo.verdicts.given import Given
from projected_grpo.verdicts.verdict import Verdict, of_table


def needs(given: Given) -> list[str]:
    """Runs alone."""
    return []


def make(given: Given) -> Verdict:
    """Return the page of a question."""
    return of_table(given, make_table(given.question, given.results))
