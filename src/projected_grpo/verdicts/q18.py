"""Q18: how well the direction tells hacks, and whether that falls where runs are trained against it."""

from projected_grpo.measures.table import make_table
from projected_grpo.verdicts.context import Context
from projected_grpo.verdicts.verdict import Verdict, of_table


def needs(context: Context) -> list[str]:
    """The rankings of every run."""
    return context.below(*(f"detector/{cell.id}.parquet" for cell in context.question.cells))


def make(context: Context) -> Verdict:
    """Return Q18's page."""
    return of_table(context, make_table(context.question, context.results, context.config.pilot))
