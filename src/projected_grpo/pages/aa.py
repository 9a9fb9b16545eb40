"""The pipeline against itself: runs of one setting on several sampling streams, compared like arms.

Nothing differs but the luck of sampling, so every p < 0.05 is a false positive, and the spread of the differences
says what a given number of seeds can detect at all.
"""

from itertools import combinations

import numpy as np
from scipy import stats as scipy_stats

from projected_grpo.measures import stats
from projected_grpo.measures.runs import load_runs
from projected_grpo.pages import stage
from projected_grpo.pages.context import Context
from projected_grpo.pages.page import Page
from projected_grpo.pages.words import short

MEASURES = ("hack", "solve")
DRAWS = 4000
SIZES = (5, 10)


def false_positives(values: np.ndarray) -> np.ndarray:
    """Return whether each pair of streams differs at p < 0.05; values is [..., streams, seeds]."""
    first, second = np.array(list(combinations(range(values.shape[-2]), 2))).T
    d = values[..., second, :] - values[..., first, :]
    p = scipy_stats.ttest_1samp(d, 0, axis=-1).pvalue
    return (p < stats.ALPHA) & (d.std(axis=-1, ddof=1) >= stats.NO_SPREAD)


def deal_anew(tables: list[np.ndarray]) -> tuple[float, float, float]:
    """Return mean and 95% range of the share with p < 0.05 where streams do not differ; tables are [streams, seeds].

    Streams that differ by luck alone are exchangeable within a replication: each draw deals them anew, in every
    replication by itself. That erases any true difference between streams, so this says what to expect without one.
    Settings and measures of equal shape share the deal, as they share the runs.
    """
    rng = np.random.default_rng(0)
    hits, total = np.zeros(DRAWS), 0
    for shape in sorted({table.shape for table in tables}):
        deal = rng.permuted(np.broadcast_to(np.arange(shape[0])[:, None], (DRAWS, *shape)), axis=1)
        for table in (table for table in tables if table.shape == shape):
            found = false_positives(np.take_along_axis(table[None], deal, axis=1))
            hits += found.sum(axis=-1)
            total += found.shape[-1]
    low, high = np.quantile(hits / total, [0.025, 0.975])
    return float((hits / total).mean()), float(low), float(high)


def make(context: Context) -> Page:
    """Return the page `aa.md`; incomplete runs are left out and named."""
    question, tables, power = context.question, [], {}
    runs, left_out = load_runs(context.results, question.cells)
    settings: dict[str, list[str]] = {}  # setting -> its rows, one a stream
    for row in question.rows:
        settings.setdefault(row.baseline or row.name, []).append(row.name)
    found = [(row.name, runs[cell.id]) for row in question.rows for cell in row.cells if cell.id in runs]
    numbers = stage.Numbers(
        (row, m, run.cell.seed, run.measures.get(m)) for row, run in found for m in MEASURES
    )
    pairs = {f"{b} - {a}": {b: 1.0, a: -1.0} for own in settings.values() for a, b in combinations(own, 2)}
    for setting, rows in settings.items():
        for measure in MEASURES:
            every = [numbers.of(row, measure) for row in rows if numbers.of(row, measure)]
            seeds = sorted(set.intersection(*map(set, every))) if every else []
            if len(every) > 1 and len(seeds) > 1:
                tables.append(np.array([[own[seed] for seed in seeds] for own in every]))
                std = float(np.sqrt(2 * tables[-1].var(axis=0, ddof=1).mean()))
                power[setting, measure] = [std, *(stats.detectable(std, n) for n in SIZES)]
    compared = [line for line in numbers.compared(pairs, MEASURES) if line["n"] > 1]
    hits = sum(line["p"] is not None and line["p"] < stats.ALPHA for line in compared)
    more = {"q": question, "compared": compared, "hits": hits, "power": power, "sizes": SIZES}
    if compared:  # exact, by Clopper and Pearson
        more["interval_of"] = scipy_stats.binomtest(hits, len(compared)).proportion_ci()
    more |= {"dealt": deal_anew(tables) if tables else None, "cells": short(runs), "left_out": left_out}
    return stage.page(context, "aa.md.j2", numbers, heads={m: m for m in MEASURES}, **more)
