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
from projected_grpo.pages.blocks import Cell, Page, Paragraph, Source, grid
from projected_grpo.pages.context import Context
from projected_grpo.pages.standing import of_seeds
from projected_grpo.pages.text import delta, interval, listing, p_value, rate, seed_list, under
from projected_grpo.verdicts.verdict import Verdict

MEASURES = ("hack", "solve")
NOTES = (
    "Both runs of a comparison have one setting and one replication (base, teacher, pool); only the sampling stream "
    "differs. Test and interval are those of the question tables.",
    "The exact interval of the false-positive rate takes the comparisons as independent. Those of three streams, and "
    "hack and solve of one run, are not, which the range over deals keeps. A bootstrap over streams would be no test: "
    "it covers 5% almost by construction.",
    "With so few comparisons only a rate far above 5% would show. The smallest differences below hold for an effect "
    "that is the same in every replication. Where an arm's effect varies between them, differences spread more: "
    "`pilot` in the config has the spread that a design is planned with.",
)
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
    cells: dict[str, tuple[str, ...]]  # setting -> cells that count
    left_out: dict[str, str]


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
    cells: dict[str, tuple[str, ...]] = {}
    for row in context.question.rows:
        setting = row.baseline or row.name
        for run in (runs[cell.id] for cell in row.cells if cell.id in runs):
            cells[setting] = (*cells.get(setting, ()), run.cell.id)
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
    return SelfCheck(tuple(comparisons), hits, len(tested), low, high, dealt, spread, cells, left_out)


def answer(check: SelfCheck) -> list[str]:
    """Return the finding, sentence by sentence."""
    if check.lo is None or check.dealt is None:
        return ["Nothing to compare: fewer than two complete streams at two seeds."]
    adjusted = sum(c.pair.holm is not None and c.pair.holm < stats.ALPHA for c in check.comparisons)
    observed = check.hits / check.tested
    covers = "covers" if check.lo <= stats.ALPHA <= check.hi else "does not cover"
    mean, low, high = check.dealt
    lies = "within" if low <= observed <= high else "above" if observed > high else "below"
    said = [
        f"Comparing the pipeline with itself gives p < 0.05 in {check.hits} of {check.tested} comparisons, and in "
        f"{adjusted} after Holm's correction.",
        f"That is a false-positive rate of {rate(observed)}, exact 95% interval {rate(check.lo)} to {rate(check.hi)}, "
        f"which {covers} 0.050.",
        f"With the streams dealt anew, which leaves luck alone, the rate is {rate(mean)} on average and {rate(low)} to "
        f"{rate(high)} in 95% of deals; the observed one lies {lies} that range.",
    ]
    if lies == "above":
        said.append("So the streams differ by more than the luck of sampling.")
    by_setting: dict[str, list[bool]] = {}
    for c in check.comparisons:
        if c.pair.n > 1:
            by_setting.setdefault(c.setting, []).append(c.hit)
    if len(by_setting) > 1:
        shares = [f"{sum(found)} of {len(found)} at {setting}" for setting, found in by_setting.items()]
        said.append(f"By setting: {listing(shares)}.")
    for (setting, measure), std in check.spread.items():
        if measure == "hack":
            sizes = " and ".join(f"{rate(stats.detectable(std, n))} with {n} seeds" for n in SIZES)
            said.append(f"At {setting} a difference in hack of {sizes} is found with 80% power.")
    return said


def to_frame(check: SelfCheck) -> pd.DataFrame:
    """Return one row per comparison for `aa.parquet`."""

    def detectable(c: Comparison, n: int) -> float | None:
        std = check.spread.get((c.setting, c.measure))
        return None if std is None else stats.detectable(std, n)

    columns = {
        "setting": lambda c: c.setting,
        "measure": lambda c: c.measure,
        "stream": lambda c: c.streams[1],
        "baseline_stream": lambda c: c.streams[0],
        "delta": lambda c: c.pair.delta,
        "delta_lo": lambda c: c.pair.lo,
        "delta_hi": lambda c: c.pair.hi,
        "p": lambda c: c.pair.p,
        "p_holm": lambda c: c.pair.holm,
        "n": lambda c: c.pair.n,
        "seeds": lambda c: ";".join(str(seed) for seed in c.pair.seeds),
        "std_difference": lambda c: check.spread.get((c.setting, c.measure)),
        **{f"detectable_n{size}": lambda c, n=size: detectable(c, n) for size in SIZES},
    }
    return pd.DataFrame({name: [of(c) for c in check.comparisons] for name, of in columns.items()})


def make(context: Context) -> Verdict:
    """Return the page `aa.md`."""
    check, question = self_check(context), context.question
    seeds = {seed for comparison in check.comparisons for seed in comparison.pair.seeds}
    comparisons = {
        "setting": lambda c: c.setting,
        "measure": lambda c: c.measure,
        "streams": lambda c: f"{c.streams[1]} - {c.streams[0]}",
        "Δ": lambda c: Cell(delta(c.pair.delta), under(interval, c.pair.lo, c.pair.hi)),
        "p": lambda c: p_value(c.pair.p),
        "Holm p": lambda c: p_value(c.pair.holm),
        "n": lambda c: Cell(str(c.pair.n), seed_list(c.pair.seeds)),
    }
    power = {
        "setting": lambda item: item[0][0],
        "measure": lambda item: item[0][1],
        "std of a difference": lambda item: rate(item[1]),
    }
    for size in SIZES:
        power[f"found with {size} seeds"] = lambda item, n=size: rate(stats.detectable(item[1], n))
    title = "Smallest true difference found with 80% power"
    page = Page(
        name=context.name,
        title=f"A/A. {question.title}",
        menu="A/A",
        asks=question.asks,
        blocks=(
            grid(check.comparisons, comparisons, texts=3),
            *(Paragraph(text, kind="note") for text in NOTES),
            grid(check.spread.items(), power, texts=2, title=title),
        ),
        answer=(*map(Paragraph, of_seeds(seeds)), Paragraph(" ".join(answer(check)))),
        sources=tuple(Source(setting, ids) for setting, ids in check.cells.items()),
        left_out=tuple(check.left_out.items()),
    )
    return Verdict(
        page, to_frame(check), log=tuple(f"left out: {c} ({why})" for c, why in check.left_out.items())
    )
