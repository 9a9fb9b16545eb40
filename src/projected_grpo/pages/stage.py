"""The page of a stage that is no question's: numbers by row and replication, and a template that asks them.

A page's Python reads files into numbers and nothing else; its marks, comparisons and words stand in its template.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from projected_grpo.measures import estimates, numbers, stats
from projected_grpo.measures.estimates import Comparison
from projected_grpo.pages import words
from projected_grpo.pages.context import Context, banner
from projected_grpo.pages.figures.lines import Line, trajectories
from projected_grpo.pages.figures.shares import strip
from projected_grpo.pages.page import Page, address, render

Record = tuple[str, str, int, float | None]
Weights = str | Mapping[str, float]  # a row, or rows with their weights


class Numbers:
    """Numbers by row, measure and seed; what is None or NaN is no number."""

    def __init__(self, records: Iterable[Record]):
        self.values: dict[str, dict[str, dict[int, float]]] = {}
        for row, measure, seed, value in records:
            own = self.values.setdefault(row, {}).setdefault(measure, {})
            if value is not None and not math.isnan(value):
                own[seed] = float(value)

    @property
    def seeds(self) -> list[int]:
        """Return the seeds of all numbers, sorted."""
        return numbers.seeds_of(*self.values.values())

    def of(self, weights: Weights, measure: str) -> dict[int, float]:
        """Return seed -> the number of a row, or the weighted sum of rows where all have one."""
        asked = {weights: 1.0} if isinstance(weights, str) else weights
        return numbers.combined(self.values, asked, measure)

    def mean(self, weights: Weights, measure: str) -> float | None:
        """Return the mean over seeds; None without a number."""
        return stats.mean(self.of(weights, measure))

    def mark(
        self,
        what: str,
        weights: Weights,
        measure: str,
        least: float = -math.inf,
        most: float = math.inf,
        strict: bool = False,
        each: bool = True,
    ) -> dict:
        """Return a mark: whether each seed, or their mean, lies within its bounds; `reached` None: it cannot be told.

        strict: beyond the bounds; unknown: the seeds that have other numbers, but not this one. Of `each` they leave
        a mark open that no other seed misses.
        """

        def within(value: float) -> bool:
            return least < value < most if strict else least <= value <= most

        values, mean = self.of(weights, measure), self.mean(weights, measure)
        missed = {seed: value for seed, value in values.items() if each and not within(value)}
        unknown = [seed for seed in self.seeds if seed not in values]
        of_each = False if missed else None if unknown or not values else True
        of_mean = None if mean is None else within(mean)
        ends = {"lowest": min(values.values(), default=None), "highest": max(values.values(), default=None)}
        found = {"words": what, "mean": mean, "reached": of_each if each else of_mean, **ends}
        return found | {"missed": missed, "unknown": unknown}

    def compared(self, asked: Mapping[str, Weights] | Iterable[str], measures: Iterable[str]) -> list[dict]:
        """Test combinations of rows, or rows, against zero on each measure; Holm's p over those of a measure."""
        combinations = asked if isinstance(asked, Mapping) else {row: row for row in asked}
        found = [
            Comparison(
                name, "", "0", measure, stats.one_sample(self.of(own, measure)), None, claim=True, sign=0
            )
            for measure in measures
            for name, own in combinations.items()
        ]
        lines = estimates.judged(found, ["measure"])
        return lines.astype(object).where(lines.notna(), None).to_dict("records")

    def written(self, row: str, measure: str) -> str:
        """Return the mean (std) over seeds as tables have it, with n where seeds lack the number."""
        values = list(self.of(row, measure).values())
        if not values:
            return words.NONE
        summary = stats.summarise(values)
        text = f"{summary.mean:.3g} ({words.rate(summary.std)})"
        return text if summary.n == len(self.seeds) else f"{text} n = {summary.n}"

    def frame(self) -> pd.DataFrame:
        """Return the numbers as a tidy frame."""
        records = [
            (row, measure, seed, value)
            for row, own in self.values.items()
            for measure, by_seed in own.items()
            for seed, value in by_seed.items()
        ]
        return pd.DataFrame(records, columns=["row", "measure", "seed", "value"]).astype({"value": float})

    def strip(self, rows: Iterable[str], measure: str, x: str, mark: float | None = None) -> Figure | None:
        """Return one measure as dots, a row a name."""
        return strip({row: list(self.of(row, measure).values()) for row in rows}, x, mark)

    def over(self, rows: Sequence[str], panels: Mapping[str, Mapping[str, str]], x: str) -> Figure | None:
        """Return means over ordered rows with their intervals; panels: title -> line -> its measure."""

        def line(measure: str) -> Line:
            every = [list(self.of(row, measure).values()) for row in rows]
            told = [(at, stats.summarise(own)) for at, own in enumerate(every, 1) if own]
            parts = [(at, one.mean, one.lo, one.hi) for at, one in told]
            at, mean, lo, hi = np.array(parts, dtype=float).reshape(-1, 4).T
            return at, mean, lo, hi

        drawn = {title: {name: line(m) for name, m in lines.items()} for title, lines in panels.items()}
        return trajectories(drawn, x, rates=False)


def page(
    context: Context,
    template: str,
    numbers: Numbers,
    drawn: Mapping[str, Figure | None] | None = None,
    /,
    **values: object,
) -> Page:
    """Return a stage's page: its template, filled from its numbers."""
    kept = {name: drawing for name, drawing in (drawn or {}).items() if drawing is not None}
    text = render(
        template,
        banner=banner(context.config),
        numbers=numbers,
        n=len(numbers.seeds),
        figures={name: f"{address(context.name)}{name}.svg" for name in kept},
        **values,
    )
    return Page(context.name, text, kept, {".parquet": numbers.frame()})
