"""A question with the numbers of its runs: its rows by measure and seed, and which of them are claims."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import pandas as pd

from projected_grpo.cells.cell import Question, Row
from projected_grpo.measures import numbers, stats
from projected_grpo.measures.measure import MEASURES, Measure
from projected_grpo.measures.numbers import Values

LEAST = 0.10  # plain training below this rate has too little to lower: uninformative
Floors = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Measured:
    """A question with the numbers of its runs.

    rows: those of the question, then one for each `pooled` name; values: row -> measure -> seed -> number; left_out:
    cells without a number, with the reason; base: measure -> seed -> rate of the base before training; stopped: step ->
    the same of plain training that ends there; floors: measure -> held-out loophole, or `all` -> rate of plain training
    on tuning seeds.
    """

    question: Question
    rows: dict[str, Row]
    values: dict[str, Values]
    left_out: dict[str, str] = field(default_factory=dict, repr=False)
    base: Values = field(default_factory=dict, repr=False)
    stopped: dict[int, Values] = field(default_factory=dict, repr=False)
    floors: Floors = field(default_factory=dict, repr=False)

    @property
    def about(self) -> Measure:
        """Return the measure that the question is about."""
        question = self.question
        if question.primary:
            return MEASURES[question.primary]
        if any(row.setting.held_out_mode for row in question.rows):
            return MEASURES["hack_heldout"]
        return MEASURES["hack_ablated" if any(row.setting.final_eval for row in question.rows) else "hack"]

    @cached_property
    def claims(self) -> frozenset[str]:
        """Return the rows that are a hypothesis: a defence, not a control, a placebo, an oracle, or less training."""
        asked = {name: row for name, row in self.rows.items() if row.claims and row.population is None}
        defences = ((name, row.setting.defence, row.setting.knobs) for name, row in asked.items())
        return frozenset(
            name for name, one, knobs in defences if one.must_give(knobs) != "oracle" and one.family != "less"
        )

    def waits(self, rows: Iterable[str]) -> bool:
        """Return whether any of these rows lacks runs."""
        own = (self.rows[name] for name in rows if name in self.rows)
        return any(cell.id in self.left_out for row in own for cell in row.cells)

    @property
    def seeds(self) -> tuple[int, ...]:
        """Return the seeds of all numbers, sorted."""
        return tuple(numbers.seeds_of(*self.values.values()))

    def among(self, seeds: Iterable[int]) -> "Measured":
        """Return the same of some seeds alone."""
        some = set(seeds)

        def kept(of: Values) -> Values:
            own = {name: {seed: by[seed] for seed in some & by.keys()} for name, by in of.items()}
            return {name: by for name, by in own.items() if by}

        values = {name: kept(of) for name, of in self.values.items()}
        stopped = {step: kept(of) for step, of in self.stopped.items() if kept(of)}
        return replace(self, values=values, base=kept(self.base), stopped=stopped)

    def of(self, row: str | None, measure: str) -> dict[int, float]:
        """Return seed -> number of a row; empty where there is no such row or number."""
        return self.values.get(row or "", {}).get(measure, {})

    def is_barren(self, row: Row, measure: str) -> bool:
        """Return whether there is too little of a measure with a floor for a row to lower.

        By the tuning seeds of plain training; where they have no rate, by the row's own baseline.
        """
        if not MEASURES[measure].floored:
            return False
        own = stats.mean(self.of(row.baseline, measure))
        rate = self.floors.get(measure, {}).get(row.setting.held_out_mode or "all", own)
        return rate is not None and rate < LEAST

    def combined(self, weights: Mapping[str, float], measure: str) -> dict[int, float]:
        """Return the weighted sum of rows by seed, where all of them have the measure."""
        return numbers.combined(self.values, weights, measure)


def measured(
    question: Question,
    frame: pd.DataFrame,
    why: Mapping[str, str] | None = None,
    floors: Floors | None = None,
) -> Measured:
    """Return a question with its numbers. Raises UserError like `numbers.check`.

    why: cell id -> why a run does not count, where that is known.
    """
    own = set(frame["cell"].unique())
    values = numbers.by_row(question, frame)
    left_out = {c.id: (why or {}).get(c.id, "missing") for c in question.cells if c.id not in own}
    rows = {row.name: row for row in question.rows}
    pooled, means = _pooled(question, values)
    base, stopped = numbers.of_base(question, frame), numbers.of_early_ends(question, frame)
    return Measured(question, rows | pooled, values | means, left_out, base, stopped, floors or {})


def _pooled(question: Question, values: dict[str, Values]) -> tuple[dict[str, Row], dict[str, Values]]:
    """Return one row for the rows of each `pooled` name, and its values: their mean by seed, where all have one."""
    single = {row.name: row for row in question.rows}
    rows: dict[str, Row] = {}
    found: dict[str, Values] = {}
    for name in dict.fromkeys(row.pooled for row in question.rows):
        parts = [single[part] for part in question.parts_of(name)]
        if name is None or not parts:
            continue
        first, *others = dict.fromkeys(row.baseline for row in parts)
        own = {
            "name": name,
            "setting": parts[0].setting.model_copy(update={"held_out_mode": None}),
            "baseline": single[str(first)].pooled if others else first,
            "cells": tuple(cell for row in parts for cell in row.cells),
        }
        no_more = dict.fromkeys(("against", "population", "place_in", "pooled"))
        rows[name] = parts[0].model_copy(update=no_more | own)
        found[name] = {}
        each = {row.name: 1.0 for row in parts}
        for measure in values[parts[0].name]:
            if sums := numbers.combined(values, each, measure):
                found[name][measure] = {seed: total / len(parts) for seed, total in sums.items()}
    return rows, found
