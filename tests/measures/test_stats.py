"""The statistics against scipy, simulation and hand-made figures."""

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from projected_grpo.measures import numbers, stats

ARM = {41: 0.50, 42: 0.61, 43: 0.44, 44: 0.70, 45: 0.52}
BASE = {41: 0.71, 42: 0.75, 43: 0.70, 44: 0.74, 45: 0.69}


def paired(arm, baseline):
    """Return the test of arm - baseline over the seeds that both have."""
    values = {"arm": {"hack": arm}, "baseline": {"hack": baseline}}
    return stats.one_sample(numbers.combined(values, {"arm": 1.0, "baseline": -1.0}, "hack"))


def holm(ps, waiting=0):
    return [None if np.isnan(p) else p for p in stats.holm(ps, waiting)]


def test_summary_matches_scipy():
    values = list(ARM.values())
    summary = stats.summarise(values)
    interval = scipy_stats.t.interval(0.95, 4, np.mean(values), scipy_stats.sem(values))
    assert summary.mean == pytest.approx(np.mean(values))
    assert summary.std == pytest.approx(np.std(values, ddof=1))
    assert (summary.lo, summary.hi) == pytest.approx(interval)


def test_one_seed_has_no_spread():
    summary = stats.summarise([0.4])
    assert (summary.std, summary.lo, summary.hi, summary.n) == (None, None, None, 1)
    pair = paired({41: 0.4}, {41: 0.7})
    assert pair.delta == pytest.approx(-0.3)
    assert (pair.std, pair.lo, pair.hi, pair.p, pair.p_same) == (None,) * 5


def test_paired_matches_scipy():
    pair = paired(ARM, BASE)
    test = scipy_stats.ttest_rel(list(ARM.values()), list(BASE.values()))
    interval = test.confidence_interval(0.95)
    assert pair.p == pytest.approx(test.pvalue, rel=1e-9)
    assert (pair.lo, pair.hi) == pytest.approx((interval.low, interval.high), rel=1e-9)
    assert pair.std == pytest.approx(np.std(np.subtract(list(ARM.values()), list(BASE.values())), ddof=1))


def test_pairing_is_by_seed_not_by_position():
    shuffled = dict(sorted(BASE.items(), reverse=True))
    assert paired(ARM, shuffled) == paired(ARM, BASE)
    fewer = {seed: value for seed, value in BASE.items() if seed != 42}
    pair = paired(ARM, fewer)
    assert pair.seeds == (41, 43, 44, 45)
    assert pair.delta == pytest.approx(np.mean([ARM[s] - BASE[s] for s in pair.seeds]))
    assert paired({1: 0.5}, {2: 0.5}) is None


def test_equal_differences_have_no_test():
    pair = paired({s: v - 0.1 for s, v in BASE.items()}, BASE)
    assert pair.delta == pytest.approx(-0.1)
    assert (pair.std, pair.p, pair.lo, pair.p_same) == (0.0, None, None, None)


def test_holm_by_hand_and_by_definition():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, None, 0.9]) == [1.0, None, 1.0]
    assert holm([]) == []
    rng = np.random.default_rng(0)
    for _ in range(50):
        ps = list(rng.random(7) ** 3)
        order = sorted(range(7), key=lambda i: ps[i])
        expected = {
            i: min(1.0, max((7 - j) * ps[order[j]] for j in range(rank + 1))) for rank, i in enumerate(order)
        }
        assert holm(ps) == pytest.approx([expected[i] for i in range(7)])
        assert holm(ps, waiting=3) == pytest.approx(holm([*ps, 1.0, 1.0, 1.0])[:7])


@pytest.mark.parametrize("n", [3, 5, 10])
def test_power_matches_simulation(n):
    draws = np.random.default_rng(n).normal(1.3, 1.0, (20_000, n))
    rejected = (scipy_stats.ttest_1samp(draws, 0, axis=1).pvalue < 0.05).mean()
    assert stats.power(1.3, n) == pytest.approx(rejected, abs=4 * math.sqrt(0.25 / 20_000))


@pytest.mark.parametrize("n", [2, 3, 5, 10, 40])
def test_detectable_difference_has_eighty_percent_power(n):
    effect = stats.detectable(0.07, n) / 0.07
    assert stats.power(effect, n) == pytest.approx(0.80, abs=1e-6)
    # Independent of our formula: the noncentral F distribution gives the same power.
    critical = scipy_stats.f.ppf(0.95, 1, n - 1)
    assert scipy_stats.ncf.sf(critical, 1, n - 1, n * effect**2) == pytest.approx(0.80, abs=1e-4)


@pytest.mark.parametrize(("shift", "spread"), [(0.0, 0.02), (0.03, 0.02), (-0.04, 0.05), (-0.2, 0.1)])
def test_two_one_sided_tests_are_scipys_and_agree_with_the_interval(shift, spread):
    rng = np.random.default_rng(7)
    for _ in range(20):
        base = dict(enumerate(rng.normal(0.5, 0.1, 8)))
        arm = {s: v + rng.normal(shift, spread) for s, v in base.items()}
        d = np.array([arm[s] - base[s] for s in base])
        pair = paired(arm, base)
        above = scipy_stats.ttest_1samp(d, -stats.MARGIN, alternative="greater").pvalue
        below = scipy_stats.ttest_1samp(d, stats.MARGIN, alternative="less").pvalue
        assert pair.p_same == pytest.approx(max(above, below), rel=1e-9)
        low, high = scipy_stats.t.interval(0.90, 7, d.mean(), scipy_stats.sem(d))
        assert (pair.p_same < 0.05) == (low > -stats.MARGIN and high < stats.MARGIN)


def test_place_matches_a_prediction_interval_and_a_regression():
    """As one more draw: the pooled two-sample t-test of one value against m, and the slope of a dummy."""
    rng = np.random.default_rng(1)
    for m in (2, 5, 10):
        population, value = list(rng.normal(-0.05, 0.03, m)), float(rng.normal(-0.2, 0.05))
        found = stats.placed(value, population, (41, 42))
        x = np.array([0.0] * m + [1.0])
        fit = scipy_stats.linregress(x, [*population, value])
        assert found.p == pytest.approx(fit.pvalue, rel=1e-6)
        half = scipy_stats.t.ppf(0.975, m - 1) * fit.stderr
        assert (found.delta, found.lo, found.hi) == pytest.approx(
            (fit.slope, fit.slope - half, fit.slope + half)
        )
        assert (found.std, found.n) == (pytest.approx(np.std(population, ddof=1)), 2)


def test_a_place_needs_a_spread():
    assert stats.placed(0.1, [0.2], (41,)) is None
    alike = stats.placed(0.1, [0.2, 0.2], (41,))
    assert (alike.delta, alike.std, alike.lo, alike.p) == (pytest.approx(-0.1), 0.0, None, None)
