"""Replays of the distillation probe, as numbers: what its tests T1-T4 stand on, and what could fake them.

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

from projected_grpo.errors import UserError
from projected_grpo.files import read_jsonl

BUCKET = 5  # a comparison with fewer values on a side has no p
ALIGNMENT, AT_START = "cos_S_contrib", "cos_S_start"
NUMBERS = (ALIGNMENT, AT_START, "cos_S_out", "grad_norm", "nll", "nll_start", "nll_teacher")
SAMPLE_KEYS = ("step", "problem_id", "hacked", "gt_pass", "tokens", *NUMBERS)
STEP_NUMBERS = ("mean_cos_in", "mean_cos_out", "cos_null", "cout_update", "fired")
STEP_KEYS = ("step", "modules", *STEP_NUMBERS)


@dataclass(frozen=True)
class Replay:
    """One replay: a row per pool sample and a row per step; null, as of a zero gradient's alignment, is NaN."""

    samples: pd.DataFrame
    steps: pd.DataFrame


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
    of_samples = pd.DataFrame(samples).astype(dict.fromkeys(NUMBERS, float))
    return Replay(of_samples, pd.DataFrame(steps).astype(dict.fromkeys(STEP_NUMBERS, float)))


@dataclass(frozen=True)
class Sides:
    """Wrong hacks (gt_pass false) against right ones: alignments of both, a one-sided test that wrong is larger.

    `t` and `p` are None where a side has fewer than BUCKET values, or no spread.
    """

    wrong: np.ndarray
    right: np.ndarray
    t: float | None = None
    p: float | None = None

    @property
    def gap(self) -> float | None:
        """Return how far the mean of wrong hacks lies above that of right ones; None without a test."""
        return None if self.t is None else float(self.wrong.mean() - self.right.mean())


def tested(wrong: np.ndarray, right: np.ndarray, paired: bool = False) -> Sides:
    """Compare two sides by Welch's one-sided t-test, or pair by pair."""
    spread = wrong - right if paired else np.concatenate([wrong, right])
    if min(len(wrong), len(right)) < BUCKET or not np.ptp(spread) > 0:
        return Sides(wrong, right)
    if paired:
        t, p = stats.ttest_rel(wrong, right, alternative="greater")
    else:
        t, p = stats.ttest_ind(wrong, right, alternative="greater", equal_var=False)
    return Sides(wrong, right, float(t), float(p)) if math.isfinite(t) else Sides(wrong, right)


def hacked_rows(samples: pd.DataFrame, value: str = ALIGNMENT) -> pd.DataFrame:
    """Return the hacked samples that have an alignment and a verdict of the hidden tests, gt_pass as bool."""
    kept = samples[samples["hacked"].eq(True) & samples["gt_pass"].notna() & np.isfinite(samples[value])]
    return kept.astype({"gt_pass": bool})


def _sides(rows: pd.DataFrame, value: str = ALIGNMENT) -> Sides:
    return tested(*(rows.loc[rows["gt_pass"].eq(right), value].to_numpy() for right in (False, True)))


def matched(rows: pd.DataFrame) -> pd.DataFrame:
    """Return equally many wrong and right hacks, paired so that their lengths hardly differ.

    At most by 2% of the mean length, at least one token. The assignment has the smallest total difference; each sample
    is used once.
    """
    caliper = max(1.0, 0.02 * float(rows["tokens"].mean())) if len(rows) else 1.0
    wrong, right = rows[~rows["gt_pass"]], rows[rows["gt_pass"]]
    gap = np.abs(wrong["tokens"].to_numpy(dtype=float)[:, None] - right["tokens"].to_numpy(dtype=float)[None])
    # A pair beyond the caliper costs more than any set of allowed pairs, so that it is only ever a leftover.
    i, j = linear_sum_assignment(np.where(gap <= caliper, gap, 1e6))
    good = gap[i, j] <= caliper
    return pd.concat([wrong.iloc[i[good]], right.iloc[j[good]]])


def readings(samples: pd.DataFrame) -> dict[str, Sides]:
    """Return T4 by name: the paper's, where each sample counts; at the untrained student; over means of problems;
    within problems; among hacks of matched length.
    """
    rows = hacked_rows(samples)
    by_problem = rows.pivot_table(index="problem_id", columns="gt_pass", values=ALIGNMENT)
    by_problem = by_problem.reindex(columns=[False, True])
    wrong, right = (by_problem[kind].dropna().to_numpy() for kind in by_problem)
    both = by_problem.dropna()
    return {
        "t4": _sides(rows),
        "t4_start": _sides(hacked_rows(samples, AT_START), AT_START),
        "t4_problems": tested(wrong, right),
        "t4_within": tested(both[False].to_numpy(), both[True].to_numpy(), paired=True),
        "t4_matched": _sides(matched(rows)),
    }


def contrast_numbers(replay: Replay) -> dict[str, float | None]:
    """Return what a vanilla replay says of its basis.

    Each reading of T4 as its t, `_p`, `_met` (t > 2 and p < 0.05) and, as a share of the alignment's bound, `_gap`.
    Sizes of both sides. Shares of problems whose hacks are wrong only, right only, and of both kinds. Pearson's
    `length_r` of alignment and length with its p, and `length_alone`: whether length is tied to the alignment and T4
    fails at matched length.
    """
    found: dict[str, float | None] = {}
    sides = readings(replay.samples)
    bound = math.sqrt(int(replay.steps["modules"].iloc[0]))  # what no alignment exceeds
    for name, one in sides.items():
        gap = None if one.gap is None else one.gap / bound
        met = one.t is not None and one.p is not None and one.t > 2 and one.p < 0.05
        found |= {name: one.t, f"{name}_p": one.p, f"{name}_met": float(met), f"{name}_gap": gap}
    found |= {"wrong": float(len(sides["t4"].wrong)), "right": float(len(sides["t4"].right))}
    kinds = hacked_rows(replay.samples).groupby("problem_id")["gt_pass"].mean()  # share of right ones
    if len(kinds):
        some = {"only_wrong": kinds.eq(0), "only_right": kinds.eq(1), "both": kinds.between(0, 1, "neither")}
        found |= {name: float(share.mean()) for name, share in some.items()}
    known = replay.samples[np.isfinite(replay.samples[ALIGNMENT])]
    length, alignment = known["tokens"].to_numpy(float), known[ALIGNMENT].to_numpy()
    if len(known) > 2 and np.ptp(length) > 0 and np.ptp(alignment) > 0:
        r, p = stats.pearsonr(length, alignment)
        untold = sides["t4_matched"].t is None
        found |= {"length_r": float(r), "length_p": float(p)}
        found["length_alone"] = None if untold else float(p < 0.05 and not found["t4_matched_met"])
    return found


def _same(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.isclose(a, b, rtol=1e-6, atol=0, equal_nan=True).mean()) if len(a) else math.nan


def replay_numbers(vanilla: Replay, projected: Replay) -> dict[str, float | None]:
    """Return what T1-T3 stand on, from both replays of one basis, and what would be seen if they were faked.

    `nll_gap`: of the pool's tokens, untrained student less teacher (0: the base wrote the pool). `norm_spread`: std /
    mean of the samples' gradient norms (0: a mask that misses the completion). `copied`, `same_first`, `same_later`:
    shares of steps with cout = cin, and of samples with one alignment in both replays, in the first step and later.
    `turned`: what the optimizer applies along the basis, less cin.
    """
    samples, steps = vanilla.samples, projected.steps
    norms, first = samples["grad_norm"].dropna(), samples["step"].eq(samples["step"].min()).to_numpy()
    ours, theirs = (replay.samples[ALIGNMENT].to_numpy() for replay in (vanilla, projected))
    known = samples["nll_teacher"].notna().all()
    return {
        "hacked": float(samples["hacked"].mean()),
        "files": float(len(vanilla.steps)),
        "finite": float(np.isfinite(samples[ALIGNMENT]).mean()),
        "lowered": float((steps["mean_cos_out"] < steps["mean_cos_in"]).mean()),
        "nll_gap": float((samples["nll_start"] - samples["nll_teacher"]).mean()) if known else None,
        "norm_spread": float(norms.std() / norms.mean()) if len(norms) > 1 and norms.mean() > 0 else 0.0,
        "copied": _same(steps["mean_cos_out"].to_numpy(), steps["mean_cos_in"].to_numpy()),
        "same_first": _same(ours[first], theirs[first]),
        "same_later": _same(ours[~first], theirs[~first]),
        "turned": float(steps["cout_update"].mean() - steps["mean_cos_in"].mean()),
        **{name: float(steps[name].mean()) for name in STEP_NUMBERS},
    }
