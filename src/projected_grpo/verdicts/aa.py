"""The pipeline against itself: runs of one setting on several sampling streams, compared like arms.

Nothing differs but the luck of sampling, so every p < 0.05 is a false positive, and the spread of the
differences says what a given number of seeds can detect at all.
"""

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats as scipy_stats

from projected_grpo.measures import stats
from projected_grpo.measures.runs import load_runs
from projected_grpo.pages import words
from projected_grpo.pages.context import Context
from projected_grpo.pages.page import Page, render

MEASURES = ("hack", "solve")
DRAWS = 4000
SIZES = (5, 10)


@dataclass(frozen=True)
class Comparison:
    """Two streams of one setting, paired by seed as an arm and its baseline are."""

    setting: str
    measure: str
    streams: tuple[int, int]
    pair: stats.Paired

    @property
    def hit(self) -> bool:
        """Whether p < 0.05: by luck alone, since nothing differs."""
        return self.pair.is_told


@dataclass(frozen=True)
class SelfCheck:
    """All comparisons, the share with p < 0.05, and the spread per setting and measure.

    `hits` of `tested` comparisons have p < 0.05; `lo`, `hi`: exact 95% interval of that share, None without a
    comparison of at least two seeds. `dealt`: mean and 95% range of the share when the streams are dealt anew,
    None without two streams at two seeds.
    """

    comparisons: tuple[Comparison, ...]
    hits: int
    tested: int
    lo: float | None
    hi: float | None
    dealt: tuple[float, float, float] | None
    spread: dict[tuple[str, str], float]  # (setting, measure) -> std of a difference between two streams
    cells: tuple[str, ...]  # that count
    left_out: dict[str, str]

    @property
    def covers(self) -> bool:
        """Whether the exact interval holds 5%."""
        return self.lo is not None and self.lo <= stats.ALPHA <= self.hi

    @property
    def luck(self) -> str:
        """Where the observed share lies to the range of deals anew: within, above or below; empty without one."""
        if self.dealt is None:
            return ""
        share, (_, low, high) = self.hits / self.tested, self.dealt
        return "within" if low <= share <= high else "above" if share > high else "below"


def false_positives(values: np.ndarray) -> np.ndarray:
    """Return whether each pair of streams differs at p < 0.05; values is [..., streams, seeds]."""
    pairs = list(combinations(range(values.shape[-2]), 2))
    d = np.stack([values[..., b, :] - values[..., a, :] for a, b in pairs], axis=-2)
    n = d.shape[-1]
    std = d.std(axis=-1, ddof=1)
    t = np.abs(d.mean(axis=-1)) * np.sqrt(n) / np.where(std < stats.NO_SPREAD, np.inf, std)
    return t > scipy_stats.t.ppf(1 - stats.ALPHA / 2, n - 1)


def deal_anew(tables: list[np.ndarray], draws: int = DRAWS, seed: int = 0) -> tuple[float, float, float]:
    """Return mean and 95% range of the share with p < 0.05 where streams do not differ; tables are [streams, seeds].

    Streams that differ by luck alone are exchangeable within a replication: each draw deals them anew, in every
    replication by itself, to the roles that are compared. That erases any true difference between streams, so
    this says what to expect without one, not what was observed. Settings and measures of equal shape share the
    deal, as they share the runs.
    """
    rng = np.random.default_rng(seed)
    hits, total = np.zeros(draws), 0
    for shape in sorted({table.shape for table in tables}):
        deal = rng.permuted(np.broadcast_to(np.arange(shape[0])[:, None], (draws, *shape)), axis=1)
        for table in tables:
            if table.shape == shape:
                found = false_positives(np.take_along_axis(table[None], deal, axis=1))
                hits += found.sum(axis=-1)
                total += found.shape[-1]
    low, high = np.quantile(hits / total, [0.025, 0.975])
    return float((hits / total).mean()), float(low), float(high)


def self_check(context: Context) -> SelfCheck:
    """Compare every pair of streams of every setting; incomplete runs are left out and named."""
    runs, left_out = load_runs(context.results, context.question.cells)
    values: dict[tuple[str, str], dict[int, dict[int, float]]] = {}  # by setting and measure: stream, seed
    for row in context.question.rows:
        setting = row.baseline or row.name
        for run in (runs[cell.id] for cell in row.cells if cell.id in runs):
            for measure in (measure for measure in MEASURES if measure in run.measures):
                streams = values.setdefault((setting, measure), {})
                streams.setdefault(row.setting.stream, {})[run.cell.seed] = run.measures[measure]
    comparisons, tables, spread = [], [], {}
    for key, streams in values.items():
        found = [((a, b), stats.paired(streams[b], streams[a])) for a, b in combinations(sorted(streams), 2)]
        found = [(both, pair) for both, pair in found if pair is not None]
        adjusted = stats.holm([pair.p for _, pair in found])
        for (both, pair), p in zip(found, adjusted, strict=True):
            comparisons.append(Comparison(*key, both, replace(pair, holm=p)))
        common = sorted(set.intersection(*map(set, streams.values())))
        if len(streams) > 1 and len(common) > 1:
            table = np.array([[streams[s][seed] for seed in common] for s in sorted(streams)])
            tables.append(table)
            spread[key] = float(np.sqrt(2 * table.var(axis=0, ddof=1).mean()))
    tested = [c for c in comparisons if c.pair.n > 1]
    hits = sum(c.hit for c in tested)
    low, high = stats.proportion_interval(hits, len(tested)) if tested else (None, None)
    dealt = deal_anew(tables) if tables else None
    return SelfCheck(tuple(comparisons), hits, len(tested), low, high, dealt, spread, tuple(runs), left_out)


def to_frame(check: SelfCheck) -> pd.DataFrame:
    """Return one row per comparison for `aa.parquet`."""
    records = []
    for c in check.comparisons:
        record = {"setting": c.setting, "measure": c.measure, "stream": c.streams[1]}
        record |= {"baseline_stream": c.streams[0], "delta": c.pair.delta, "delta_lo": c.pair.lo}
        record |= {"delta_hi": c.pair.hi, "p": c.pair.p, "p_holm": c.pair.holm, "n": c.pair.n}
        std = check.spread.get((c.setting, c.measure))
        record |= {"seeds": ";".join(map(str, c.pair.seeds)), "std_difference": std}
        records.append(record | {f"detectable_n{n}": std and stats.detectable(std, n) for n in SIZES})
    return pd.DataFrame(records)


def make(context: Context) -> Page:
    """Return the page `aa.md`."""
    check, question = self_check(context), context.question
    compared = []
    for c in check.comparisons:
        delta = f"{words.signed(c.pair.delta)} {words.interval(c.pair.lo, c.pair.hi)}".strip()
        ps = [words.p_value(c.pair.p), words.p_value(c.pair.holm)]
        compared.append([c.setting, c.measure, f"{c.streams[1]} - {c.streams[0]}", delta, *ps, c.pair.n])
    power = [
        [*key, words.rate(std), *(words.rate(stats.detectable(std, n)) for n in SIZES)]
        for key, std in check.spread.items()
    ]
    head = ["setting", "measure"]
    text = render(
        "aa.md.j2",
        banner=context.config.banner,
        q=question,
        check=check,
        adjusted=sum(c.pair.holm is not None and c.pair.holm < stats.ALPHA for c in check.comparisons),
        compared=words.table([*head, "streams", "Δ", "p", "Holm p", "n"], compared, 3),
        power=words.table(
            [*head, "std of a difference", *(f"found with {n} seeds" for n in SIZES)], power, 2
        ),
        n=max((c.pair.n for c in check.comparisons), default=0),
        cells=words.short(check.cells),
    )
    log = tuple(f"left out: {cell} ({why})" for cell, why in check.left_out.items())
    return Page(context.name, text, {}, {".parquet": to_frame(check)}, log)
