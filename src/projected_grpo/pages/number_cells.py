"""Cells of a table that hold a tested number or the mean of several seeds, written the same on every page."""

from collections.abc import Iterable

from projected_grpo.measures import stats
from projected_grpo.pages.blocks import Cell
from projected_grpo.pages.text import NONE, rate, under


def mean_cell(values: Iterable[float]) -> Cell:
    """Return the mean over seeds, below it their std and number."""
    found = list(values)
    if not found:
        return Cell(NONE)
    summary = stats.summarise(found)
    return Cell(rate(summary.mean), f"{under(rate, summary.std)} n = {summary.n}".strip())
