"""T4 of the bases of an R question on every replication's pool, and differences between its rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from projected_grpo.cells.cell import Row
from projected_grpo.measures import stats
from projected_grpo.pages.table import Line, Table
from projected_grpo.pages.text import NONE, p_value
from projected_grpo.verdicts.probe import Contrast, Replay, read_replay, t4, t4_problem_means


@dataclass(frozen=True)
class Sight:
    """T4 of one basis on every replication's pool."""

    basis: str
    replays: dict[int, Replay]
    contrasts: dict[int, Contrast]
    by_problem: dict[int, Contrast]

    @property
    def t(self) -> dict[int, float]:
        return {seed: contrast.t for seed, contrast in self.contrasts.items() if contrast.t is not None}


def read_sights(folders: Mapping[str, Mapping[int, str]], root: Path, n_steps: int) -> dict[str, Sight]:
    """Read all replays (of `n_steps` each) below `root` and compute T4 of each."""
    sights = {}
    for basis, by_seed in folders.items():
        replays = {seed: read_replay(root / folder, n_steps) for seed, folder in by_seed.items()}
        contrasts = {seed: t4(replay.samples) for seed, replay in replays.items()}
        by_problem = {seed: t4_problem_means(replay.samples) for seed, replay in replays.items()}
        sights[basis] = Sight(basis, replays, contrasts, by_problem)
    return sights


def t4_grid(sights: Mapping[str, Sight]) -> tuple[list[str], list[list[str]]]:
    """Return header and text cells of T4 per basis and seed."""
    seeds = sorted({seed for sight in sights.values() for seed in sight.contrasts})
    header = [
        "basis",
        *(f"t (seed {seed})" for seed in seeds),
        "mean t",
        "t > 2, p < 0.05",
        "mean t by problem",
    ]

    def shown(contrast: Contrast | None) -> str:
        if contrast is None or contrast.t is None:
            return f"{contrast.short} short" if contrast and contrast.short else NONE
        return f"{contrast.t:.2f}"

    def mean(values: list[float]) -> str:
        return f"{sum(values) / len(values):.2f}" if values else NONE

    rows = []
    for name, sight in sights.items():
        passed = sum(contrast.passed for contrast in sight.contrasts.values())
        by_problem = [contrast.t for contrast in sight.by_problem.values() if contrast.t is not None]
        cells = [name, *(shown(sight.contrasts.get(seed)) for seed in seeds), mean(list(sight.t.values()))]
        rows.append([*cells, f"{passed} of {len(sight.contrasts)}", mean(by_problem)])
    return header, rows


def compare_t(other: Sight, reference: Sight) -> str:
    """Say on how many replications the other basis's t is at least the reference's, and the paired difference."""
    pair = stats.paired(other.t, reference.t)
    if pair is None:
        return f"`{other.basis}` and `{reference.basis}` have no pool on which both have a t"
    higher = sum(other.t[seed] >= reference.t[seed] for seed in pair.seeds)
    text = f"`{other.basis}` has at least the t of `{reference.basis}` on {higher} of {pair.n} pools "
    text += f"(mean difference {pair.delta:+.2f}"
    return text + (
        f", 95% [{pair.lo:+.2f}, {pair.hi:+.2f}], p {p_value(pair.p)})" if pair.lo is not None else ")"
    )


def difference(arm: Line, baseline: Line, measure: str) -> stats.Paired | None:
    """Return arm - baseline of one measure, paired by seed, whatever rows they are."""
    return stats.paired(arm.values.get(measure, {}), baseline.values.get(measure, {}))


def effect_by_seed(table: Table, row: Row, measure: str = "hack") -> dict[int, float]:
    """Return seed -> (row - its baseline)."""
    line, base = table.line(row.name), table.line(row.baseline)
    ours, theirs = line.values.get(measure, {}), base.values.get(measure, {})
    return {seed: ours[seed] - theirs[seed] for seed in sorted(set(ours) & set(theirs))}
