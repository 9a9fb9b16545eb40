"""The statistics against scipy, simulation and hand-made figures."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats
from synthetic import real_questions, write_run

from projected_grpo.measures import stats
from projected_grpo.verdicts import aa

ARM = {41: 0.50, 42: 0.61, 43: 0.44, 44: 0.70, 45: 0.52}
BASE = {41: 0.71, 42: 0.75, 43: 0.70, 44: 0.74, 45: 0.69}


def test_last_mean_uses_the_last_five_steps():
    assert stats.last_mean([9, 9, 1, 2, 3, 4, 5]) == 3.0
    assert stats.last_mean([1.0, 2.0]) == 1.5


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
    pair = stats.paired({41: 0.4}, {41: 0.7})
    assert pair.delta == pytest.approx(-0.3)
    assert (pair.std, pair.lo, pair.hi, pair.p, pair.detectable) == (None,) * 5


def test_paired_matches_scipy():
    pair = stats.paired(ARM, BASE)
    test = scipy_stats.ttest_rel(list(ARM.values()), list(BASE.values()))
    interval = test.confidence_interval(0.95)
    assert pair.p == pytest.approx(test.pvalue, rel=1e-9)
    assert (pair.lo, pair.hi) == pytest.approx((interval.low, interval.high), rel=1e-9)
    assert pair.std == pytest.approx(np.std(np.subtract(list(ARM.values()), list(BASE.values())), ddof=1))


def test_pairing_is_by_seed_not_by_position():
    shuffled = dict(sorted(BASE.items(), reverse=True))
    assert stats.paired(ARM, shuffled) == stats.paired(ARM, BASE)
    fewer = {seed: value for seed, value in BASE.items() if seed != 42}
    pair = stats.paired(ARM, fewer)
    assert pair.seeds == (41, 43, 44, 45)
    assert pair.delta == pytest.approx(np.mean([ARM[s] - BASE[s] for s in pair.seeds]))
    assert stats.paired({1: 0.5}, {2: 0.5}) is None


def test_equal_differences_have_no_test():
    pair = stats.paired({s: v - 0.1 for s, v in BASE.items()}, BASE)
    assert pair.delta == pytest.approx(-0.1)
    assert (pair.std, pair.p, pair.lo, pair.detectable) == (0.0, None, None, None)


def test_holm_by_hand_and_by_definition():
    assert stats.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert stats.holm([0.5, None, 0.9]) == [1.0, None, 1.0]
    assert stats.holm([]) == []
    rng = np.random.default_rng(0)
    for _ in range(50):
        ps = list(rng.random(7) ** 3)
        order = sorted(range(7), key=lambda i: ps[i])
        expected = {
            i: min(1.0, max((7 - j) * ps[order[j]] for j in range(rank + 1))) for rank, i in enumerate(order)
        }
        assert stats.holm(ps) == pytest.approx([expected[i] for i in range(7)])
        assert stats.holm(ps, waiting=3) == pytest.approx(stats.holm([*ps, 1.0, 1.0, 1.0])[:7])


@pytest.mark.parametrize("n", [3, 5, 10])
def test_power_matches_simulation(n):
    rng = np.random.default_rng(n)
    effect = 1.3
    draws = rng.normal(effect, 1.0, (20_000, n))
    rejected = (scipy_stats.ttest_1samp(draws, 0, axis=1).pvalue < 0.05).mean()
    assert stats.power(effect, 1.0, n) == pytest.approx(rejected, abs=4 * math.sqrt(0.25 / 20_000))


@pytest.mark.parametrize("n", [2, 3, 5, 10, 40])
def test_detectable_difference_has_eighty_percent_power(n):
    smallest = stats.detectable(0.07, n)
    assert stats.power(smallest, 0.07, n) == pytest.approx(0.80, abs=1e-6)
    assert stats.power(0.99 * smallest, 0.07, n) < 0.80
    # Independent of our formula: the noncentral F distribution gives the same power.
    critical = scipy_stats.f.ppf(0.95, 1, n - 1)
    shift = n * (smallest / 0.07) ** 2
    assert scipy_stats.ncf.sf(critical, 1, n - 1, shift) == pytest.approx(0.80, abs=1e-4)


def test_interval_covers_where_a_bootstrap_does_not():
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(2000):
        values = rng.normal(0.4, 0.1, 5)
        summary = stats.summarise(values)
        covered += summary.lo <= 0.4 <= summary.hi
    assert covered / 2000 == pytest.approx(0.95, abs=0.02)


def test_false_positives_match_scipy():
    values = np.random.default_rng(5).normal(0.5, 0.1, (40, 3, 5))
    values[7:, 1] += 0.15
    found = aa.false_positives(values)
    for table, row in zip(values, found, strict=True):
        ps = [scipy_stats.ttest_rel(table[b], table[a]).pvalue for a, b in ((0, 1), (0, 2), (1, 2))]
        assert list(row) == [p < 0.05 for p in ps]
    assert not aa.false_positives(np.full((3, 5), 0.4)).any()


def test_exact_interval_of_a_share_is_the_beta_distributions():
    low, high = stats.proportion_interval(3, 12)
    assert low == pytest.approx(scipy_stats.beta.ppf(0.025, 3, 10))
    assert high == pytest.approx(scipy_stats.beta.ppf(0.975, 4, 9))
    assert stats.proportion_interval(0, 12) == (0.0, pytest.approx(1 - 0.025 ** (1 / 12)))


def test_redealt_streams_give_five_percent_where_nothing_differs():
    rng = np.random.default_rng(11)
    tables = [rng.normal(0, 0.2, (1, 10)) + rng.normal(0.6, 0.05, (3, 10)) for _ in range(12)]
    mean, low, high = aa.deal_anew(tables)
    assert low <= 0.05 <= high
    assert mean == pytest.approx(0.05, abs=0.02)


def test_self_check_compares_every_pair_of_streams(tmp_path):
    question = real_questions(3)[1]["aa"]
    for cell in question.cells:
        write_run(tmp_path, cell)
    check = aa.self_check(question, tmp_path)
    assert len(check.comparisons) == 2 * 2 * 3  # settings, measures, pairs of streams
    assert set(check.spread) == {(f"mix {mix}", m) for mix in (0.125, 0.5) for m in ("hack", "solve")}
    page = aa.to_markdown(check)
    assert "vanilla-stream2-m0.5-s43" in page and "80% power" in page
    assert len(aa.to_frame(check)) == 12
    (tmp_path / "grpo/vanilla-stream2-m0.5-s43/steps.parquet").unlink()
    assert "`vanilla-stream2-m0.5-s43` (missing)" in aa.to_markdown(aa.self_check(question, tmp_path))


def streams_apart(results, shift):
    """Return the self-check of runs whose streams differ by `shift` beside noise, in hack and solve."""
    question = real_questions(5)[1]["aa"]
    for cell in question.cells:
        noise = np.random.default_rng([cell.seed, *cell.id.encode()]).normal(0, 0.02, 2)
        rates = 0.5 + shift * (cell.setting.stream - 1) + noise
        folder = write_run(results, cell, *rates)
        steps = pd.read_parquet(folder / "steps.parquet")
        steps.assign(solve_s=rates[1]).to_parquet(folder / "steps.parquet")
    return aa.self_check(question, results)


def test_streams_that_differ_are_no_false_positives_by_luck(tmp_path):
    check = streams_apart(tmp_path, 0.3)
    assert (check.hits, check.tested) == (12, 12)
    text = aa.answer(check)
    assert "rate of 1.000, exact 95% interval 0.735 to 1.000, which does not cover 0.050" in text
    assert "lies above that range" in text and "more than the luck of sampling" in text
    # Dealing anew erases the difference: it says what to expect by luck, whatever was observed.
    assert check.dealt[2] < 1


def test_streams_that_do_not_differ_cover_five_percent(tmp_path):
    check = streams_apart(tmp_path, 0.0)
    rejected = [c.pair.p < 0.05 for c in check.comparisons]
    assert check.hits == sum(rejected)
    assert (check.lo, check.hi) == stats.proportion_interval(sum(rejected), 12)
    text = aa.answer(check)
    assert "which covers 0.050" in text and "lies within that range" in text
