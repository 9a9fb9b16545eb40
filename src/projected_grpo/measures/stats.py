"""The statistics of every table, in one place: seeds are the unit, arms are paired by seed.

A run is reduced to one number first (the mean of its last five steps); everything here works on such numbers,
keyed by seed. Intervals are t-intervals: at n = 5 a bootstrap of the mean covers 83% instead of 95%.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pandas as pd
from scipy import stats
from scipy.optimize import brentq
from scipy.special import stdtr  # of Student's t: what `stats.t` calls, without its checks

ALPHA = 0.05
POWER = 0.80
# Two rates this close count as the same: set before the runs whose tables speak of it.
MARGIN = 0.05
# Differences of rates are multiples of 1/rollouts; below this their spread is rounding, not variation.
NO_SPREAD = 1e-12
EXACT = 16  # seeds up to which every choice of signs is looked at


@dataclass(frozen=True)
class Summary:
    """Mean and spread of one measure over seeds; `std` (ddof 1), `lo`, `hi` are None below two seeds."""

    mean: float
    std: float | None
    lo: float | None
    hi: float | None
    n: int


@dataclass(frozen=True)
class Tested:
    """A difference over seeds, or of a value to a population, with its tests against zero.

    `std`, `lo`, `hi`, `p`, `p_same` are None below two seeds; all but `std` also where all differences are equal,
    since a t-test then has nothing to measure its noise with. `p_same`: of the two one-sided tests against
    +-MARGIN, below ALPHA where the 90% interval lies inside.
    """

    delta: float
    n: int
    seeds: tuple[int, ...]
    std: float | None = None
    lo: float | None = None
    hi: float | None = None
    p: float | None = None
    p_same: float | None = None
    p_signflip: float | None = None


@lru_cache
def critical(n: int) -> float:
    """Two-sided critical value of the t distribution for n values."""
    return float(stats.t.ppf(1 - ALPHA / 2, n - 1))


def mean(by_seed: Mapping[int, float]) -> float | None:
    """Return the mean of numbers by seed; None without any."""
    return float(np.mean(list(by_seed.values()))) if by_seed else None


def summarise(values: Sequence[float]) -> Summary:
    """Mean, std (ddof 1) and 95% t-interval of the mean over seeds; the mean of nothing is NaN."""
    x = np.asarray(values, dtype=float)
    mean = float(x.mean()) if x.size else math.nan
    if x.size < 2:
        return Summary(mean, None, None, None, x.size)
    std = float(x.std(ddof=1))
    half = critical(x.size) * std / math.sqrt(x.size)
    return Summary(mean, std, mean - half, mean + half, x.size)


def _tested(delta: float, std: float, error: float, n: int, seeds: tuple[int, ...]) -> Tested:
    """Test a difference by its standard error, t with n - 1 degrees of freedom; without a spread there is no test."""
    if std < NO_SPREAD:
        return Tested(delta, len(seeds), seeds, 0.0)
    p, half = float(2 * stdtr(n - 1, -abs(delta) / error)), critical(n) * error
    return Tested(delta, len(seeds), seeds, std, delta - half, delta + half, p)


def one_sample(differences: Mapping[int, float]) -> Tested | None:
    """Test numbers by seed, such as paired differences, against zero; None without any."""
    seeds, n = tuple(sorted(differences)), len(differences)
    if not seeds:
        return None
    d = np.array([differences[seed] for seed in seeds], dtype=float)
    delta = float(d.mean())
    if n < 2:
        return Tested(delta, n, seeds)
    std = float(d.std(ddof=1))
    error = std / math.sqrt(n)
    found = _tested(delta, std, error, n, seeds)
    if found.p is None:
        return found
    # The side that it is closer to has the larger p.
    p_same = float(stdtr(n - 1, (abs(delta) - MARGIN) / error))
    return replace(found, p_same=p_same, p_signflip=sign_flip(d))


@lru_cache
def _signs(n: int) -> np.ndarray:
    """Return every choice of signs `[2^(n - 1), n]` of n numbers, the last one's fixed: two-sided, a half is enough."""
    bits = np.arange(2 ** (n - 1))[:, None] >> np.arange(n) & 1
    return 1.0 - 2.0 * bits


def sign_flip(differences: np.ndarray) -> float | None:
    """Return the p of the exact sign-flip test of paired differences; None above `EXACT`, where signs are too many.

    The share of all choices of signs whose mean is as far from zero. With n seeds it cannot go below 2 / 2^n.
    """
    if len(differences) > EXACT:
        return None
    sums, rounding = np.abs(_signs(len(differences)) @ differences), NO_SPREAD * np.abs(differences).sum()
    return float(np.mean(sums >= np.abs(differences.sum()) - max(NO_SPREAD, rounding)))


def placed(value: float, population: Sequence[float], seeds: tuple[int, ...]) -> Tested | None:
    """Return where `value` lies in a population of placebos, as a test of one more draw; None for fewer than two.

    delta: to their mean; std: theirs (ddof 1); interval and p by t = delta / (std sqrt(1 + 1/m)), m - 1 degrees of
    freedom, none where the others do not differ; seeds: those behind each of these values.
    """
    others = np.asarray(population, dtype=float)
    m = len(others)
    if m < 2:
        return None
    std = float(others.std(ddof=1))
    return _tested(value - float(others.mean()), std, std * math.sqrt(1 + 1 / m), m, seeds)


def holm(ps: Iterable[float | None], waiting: int = 0) -> pd.Series:
    """Return Holm's step-down adjusted p-values in the order given; None and NaN are not counted.

    waiting: comparisons of the family whose runs are still missing. They count as not rejected, so that a partial
    table claims nothing that the full one could take back.
    """
    given = pd.Series(ps, dtype=float)
    known = given.dropna().sort_values(kind="stable")
    return (known * (waiting + np.arange(len(known), 0, -1))).clip(upper=1).cummax().reindex(given.index)


def power(effect: float, n: int) -> float:
    """Power of the two-sided paired t-test for a true difference of `effect` >= 0 stds, exact (noncentral t)."""
    df, shift, bound = n - 1, effect * math.sqrt(n), critical(n)
    wrong_side = stats.nct.cdf(-bound, df, shift)
    # Far out, scipy's cdf underflows to NaN where the true value is below 1e-16.
    return float(stats.nct.sf(bound, df, shift)) + (0.0 if math.isnan(wrong_side) else float(wrong_side))


@lru_cache
def _detectable_effect(n: int) -> float:
    """Smallest |difference| / std that n pairs show with power `POWER`; independent of the data."""
    upper = 1.0
    while power(upper, n) < POWER:
        upper *= 2
    return float(brentq(lambda effect: power(effect, n) - POWER, 1e-9, upper))


def detectable(std: float, n: int) -> float:
    """Smallest true |difference| that n >= 2 pairs whose differences have `std` show with power `POWER`."""
    return std * _detectable_effect(n)
