"""A question's table and what follows from it: most pages are nothing else."""

from projected_grpo.cells.cell import Question
from projected_grpo.measures.table import Table, make_table
from projected_grpo.verdicts.context import Context
from projected_grpo.verdicts.verdict import Verdict, of_table


def table_of(context: Context, question: Question | None = None) -> Table:
    """Return the table of a page's question, or of another one on the same results."""
    return make_table(question or context.question, context.results, context.config.spreads)


def make(context: Context) -> Verdict:
    """Return the page of a question."""
    return of_table(context, table_of(context))
