"""Replays of the distillation probe, and the statistics of its tests.

T4 asks whether the basis tells a hack from a right answer that also hacks: within hacked samples, is the
alignment larger where the hidden tests fail? Samples of one problem are not independent, so the plain Welch test
(the paper's) stands beside the same question asked per problem, within problems and at matched length.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats
from scipy.optimize import linear_sum_assignment

from projected_grpo.cells.config import Config
from projected_grpo.errors import UserError
from projected_grpo.files import read_jsonl

BUCKET = 5  # a comparison with fewer values on a side has no p
ALIGNMENT = "cos_S_contrib"
ALIGNMENTS = (ALIGNMENT, "cos_S_start", "cos_S_out")
NUMBERS = (*ALIGNMENTS, "grad_norm", "nll", "nll_start", "nll_teacher")
SAMPLE_KEYS = ("step", "problem_id", "hacked", "gt_pass", "tokens", *NUMBERS)
STEP_NUMBERS = ("mean_cos_in", "mean_cos_out", "cos_null", "cout_update", "fired")
STEP_KEYS = ("step", "modules", *STEP_NUMBERS)


def n_steps(config: Config) -> int:
    """Return how many problems of a pool have the probe's hint: the modes stand in rotation.

    Raises UserError where the pool has none.
    """
    probe, modes = config.probe, config.pool.modes
    if probe.mode not in modes:
        raise UserError(
            f"config: probe.mode {probe.mode!r} is no mode of the pool; allowed: {', '.join(modes)}"
        )
    return min(len(range(modes.index(probe.mode), config.pool.problems, len(modes))), probe.problems)


def files(folder: str, config: Config) -> list[str]:
    """Return the step files of a replay, below the results folder; folder: below its `probe`."""
    return [f"probe/{folder}/step_{step:03d}.jsonl.gz" for step in range(n_steps(config))]


@dataclass(frozen=True)
class Replay:
    """One replay: a row per pool sample and a row per step."""

    folder: Path
    samples: pd.DataFrame
    steps: pd.DataFrame

    @property
    def bound(self) -> float:
        """What no alignment exceeds: the root of the modules that have axes."""
        return math.sqrt(int(self.steps["modules"].iloc[0]))


def read_replay(folder: Path, n_steps: int) -> Replay:
    """Read step files 0 ... `n_steps` - 1 of a replay; others, left by a longer one, are not looked at.

    Raises UserError on a missing, damaged or incomplete file, and on one of another step.
    """
    samples, steps = [], []
    for number in range(n_steps):
        path = Path(folder) / f"step_{number:03d}.jsonl.gz"
        rows = list(read_jsonl(path))
        found = [row for row in rows if row.get("kind") == "step"]
        if len(found) != 1 or len(rows) < 2:
            raise UserError(f"{path}: expected sample rows and one `step` row, found {len(rows)} rows")
        for row in rows:
            keys = STEP_KEYS if row is found[0] else SAMPLE_KEYS
            if missing := [key for key in keys if key not in row]:
                raise UserError(f"{path}: a row has no key {missing[0]!r}")
            if row["step"] != number:
                raise UserError(f"{path}: a row of step {row['step']}, expected step {number} alone")
        steps += found
        samples += [row for row in rows if row is not found[0]]
    return Replay(Path(folder), _frame(samples, NUMBERS), _frame(steps, STEP_NUMBERS))


def _frame(rows: list[dict], numbers: tuple[str, ...]) -> pd.DataFrame:
    """Return a row each; null among the `numbers` (a zero gradient has no alignment) is NaN."""
    return pd.DataFrame(rows).astype(dict.fromkeys(numbers, float))


@dataclass(frozen=True)
class Sides:
    """Wrong hacks (gt_pass false) against right ones: sizes, means, a one-sided test that wrong is larger.

    `t` and `p` are None where a side has fewer than BUCKET values, or no spread.
    """

    n_wrong: int
    n_right: int
    mean_wrong: float | None
    mean_right: float | None
    t: float | None
    p: float | None

    @property
    def short(self) -> int:
        """How many values the smaller side lacks."""
        return max(0, BUCKET - min(self.n_wrong, self.n_right))

    @property
    def passed(self) -> bool:
        """Whether T4's mark is met: t > 2 and p < 0.05."""
        return self.t is not None and self.t > 2 and self.p < 0.05


def _known(t: float, p: float) -> tuple[float | None, float | None]:
    return (None, None) if math.isnan(t) or math.isinf(t) else (float(t), float(p))


def welch(wrong: np.ndarray, right: np.ndarray) -> Sides:
    """Compare two buckets of alignments by Welch's one-sided t-test."""
    wrong, right = np.asarray(wrong, dtype=float), np.asarray(right, dtype=float)
    means = [float(side.mean()) if len(side) else None for side in (wrong, right)]
    t = p = None
    if min(len(wrong), len(right)) >= BUCKET and np.ptp(wrong) + np.ptp(right) > 0:
        t, p = _known(*stats.ttest_ind(wrong, right, equal_var=False, alternative="greater"))
    return Sides(len(wrong), len(right), *means, t, p)


def hacked_rows(samples: pd.DataFrame, value: str = ALIGNMENT) -> pd.DataFrame:
    """Return the hacked samples that have an alignment and a verdict of the hidden tests, gt_pass as bool."""
    kept = samples[samples["hacked"].eq(True) & samples["gt_pass"].notna() & np.isfinite(samples[value])]
    return kept.assign(gt_pass=kept["gt_pass"].astype(bool))


def _sides(rows: pd.DataFrame, value: str = ALIGNMENT) -> tuple[np.ndarray, np.ndarray]:
    right = rows["gt_pass"].to_numpy(dtype=bool)
    values = rows[value].to_numpy(dtype=float)
    return values[~right], values[right]


def t4(samples: pd.DataFrame, value: str = ALIGNMENT) -> Sides:
    """T4 as the paper has it: every hacked sample counts as one."""
    return welch(*_sides(hacked_rows(samples, value), value))


def t4_problem_means(samples: pd.DataFrame) -> Sides:
    """T4 over per-problem means: each problem counts once on each side that it has samples on."""
    means = hacked_rows(samples).groupby(["problem_id", "gt_pass"])[ALIGNMENT].mean().reset_index()
    return welch(*_sides(means))


def t4_within(samples: pd.DataFrame) -> Sides:
    """T4 within problems: a one-sided t-test on the differences of problems with both kinds of hack."""
    rows = hacked_rows(samples)
    table = rows.pivot_table(index="problem_id", columns="gt_pass", values=ALIGNMENT).dropna()
    n = len(table) if set(table.columns) == {False, True} else 0
    if n == 0:
        return Sides(0, 0, None, None, None, None)
    t = p = None
    if n >= BUCKET:
        t, p = _known(*stats.ttest_1samp(table[False] - table[True], 0, alternative="greater"))
    return Sides(n, n, float(table[False].mean()), float(table[True].mean()), t, p)


def matched(rows: pd.DataFrame, caliper: float) -> pd.DataFrame:
    """Return equally many wrong and right hacks, paired so that lengths differ by at most `caliper` tokens.

    The assignment has the smallest total length difference; each sample is used once.
    """
    wrong, right = rows[~rows["gt_pass"]], rows[rows["gt_pass"]]
    gap = np.abs(wrong["tokens"].to_numpy(dtype=float)[:, None] - right["tokens"].to_numpy(dtype=float)[None])
    # A pair beyond the caliper costs more than any set of allowed pairs, so that it is only ever a leftover.
    cost = np.where(gap <= caliper, gap, 1e6)
    i, j = linear_sum_assignment(cost)
    good = gap[i, j] <= caliper
    return pd.concat([wrong.iloc[i[good]], right.iloc[j[good]]])


def caliper_of(rows: pd.DataFrame) -> float:
    """Return how far matched lengths may differ: 2% of the mean length, at least one token."""
    return max(1.0, 0.02 * float(rows["tokens"].mean())) if len(rows) else 1.0


def t4_matched(samples: pd.DataFrame) -> Sides:
    """T4 among hacks of matched length."""
    rows = hacked_rows(samples)
    return welch(*_sides(matched(rows, caliper_of(rows))))


@dataclass(frozen=True)
class Correlation:
    """Pearson's r and Spearman's rho with their p-values; None where a side has no spread."""

    r: float | None
    r_p: float | None
    rho: float | None
    rho_p: float | None
    n: int


def length_correlation(samples: pd.DataFrame) -> Correlation:
    """Correlate the alignment with the completion's length over all samples."""
    rows = samples[np.isfinite(samples[ALIGNMENT])]
    x, y = rows["tokens"].to_numpy(dtype=float), rows[ALIGNMENT].to_numpy(dtype=float)
    if len(rows) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return Correlation(None, None, None, None, len(rows))
    r, rho = stats.pearsonr(x, y), stats.spearmanr(x, y)
    return Correlation(*map(float, (r.statistic, r.pvalue, rho.statistic, rho.pvalue)), len(rows))


@dataclass(frozen=True)
class Fixed:
    """How far gt_pass is decided by the problem: problems with hacks of one kind only, and of both kinds."""

    only_wrong: int
    only_right: int
    both: int

    @property
    def total(self) -> int:
        return self.only_wrong + self.only_right + self.both


def fixed_by_problem(samples: pd.DataFrame) -> Fixed:
    """Count the problems by the kinds of hack that they have."""
    kinds = hacked_rows(samples).groupby("problem_id")["gt_pass"].agg(["any", "all"])
    both = int((kinds["any"] & ~kinds["all"]).sum())
    return Fixed(int((~kinds["any"]).sum()), int(kinds["all"].sum()), both)
