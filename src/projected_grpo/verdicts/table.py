"""A question's table and what follows from it: most pages are nothing else."""

from projected_grpo.measures.table import make_table
from projected_grpo.verdicts.context import Context
from projected_grpo.verdicts.verdict import Verdict, of_table


def make(context: Context) -> Verdict:
    """Return the page of a question."""
    return of_table(context, make_table(context.question, context.results, context.config.spreads))
