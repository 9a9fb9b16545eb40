"""The pipeline against itself: every pair of streams, its false positives, and what luck alone would give."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats
from synthetic import context_of, write_run

from projected_grpo.measures import stats
from projected_grpo.verdicts import aa


def test_false_positives_match_scipy():
    values = np.random.default_rng(5).normal(0.5, 0.1, (40, 3, 5))
    values[7:, 1] += 0.15
    found = aa.false_positives(values)
    for table, row in zip(values, found, strict=True):
        ps = [scipy_stats.ttest_rel(table[b], table[a]).pvalue for a, b in ((0, 1), (0, 2), (1, 2))]
        assert list(row) == [p < 0.05 for p in ps]
    assert not aa.false_positives(np.full((3, 5), 0.4)).any()


def test_redealt_streams_give_five_percent_where_nothing_differs():
    rng = np.random.default_rng(11)
    tables = [rng.normal(0, 0.2, (1, 10)) + rng.normal(0.6, 0.05, (3, 10)) for _ in range(12)]
    mean, low, high = aa.deal_anew(tables)
    assert low <= 0.05 <= high
    assert mean == pytest.approx(0.05, abs=0.02)


def test_self_check_compares_every_pair_of_streams(tmp_path):
    context = context_of("aa", tmp_path, 3)
    for cell in context.question.cells:
        write_run(tmp_path, cell)
    check = aa.self_check(context)
    assert len(check.comparisons) == 2 * 2 * 3  # settings, measures, pairs of streams
    assert set(check.spread) == {(f"mix {mix}", m) for mix in (0.125, 0.5) for m in ("hack", "solve")}
    page = aa.make(context).text
    assert "`vanilla-stream2-m0.5-s{41..43}`" in page
    assert len(aa.to_frame(check)) == 12
    (tmp_path / "grpo/vanilla-stream2-m0.5-s43/steps.parquet").unlink()
    assert "`vanilla-stream2-m0.5-s43` (missing)" in aa.make(context).text


def streams_apart(results, shift):
    """Return the self-check of runs whose streams differ by `shift` beside noise, in hack and solve."""
    context = context_of("aa", results, 5)
    for cell in context.question.cells:
        noise = np.random.default_rng([cell.seed, *cell.id.encode()]).normal(0, 0.02, 2)
        rates = 0.5 + shift * (cell.setting.stream - 1) + noise
        folder = write_run(results, cell, *rates)
        steps = pd.read_parquet(folder / "steps.parquet")
        steps.assign(solve_s=rates[1]).to_parquet(folder / "steps.parquet")
    return aa.self_check(context)


def test_streams_that_differ_are_no_false_positives_by_luck(tmp_path):
    check = streams_apart(tmp_path, 0.3)
    assert (check.hits, check.tested) == (12, 12)
    assert check.lo == pytest.approx(0.735, abs=5e-4) and check.hi == 1
    assert not check.covers and check.luck == "above"
    # Dealing anew erases the difference: it says what to expect by luck, whatever was observed.
    assert check.dealt[2] < 1


def test_streams_that_do_not_differ_cover_five_percent(tmp_path):
    check = streams_apart(tmp_path, 0.0)
    rejected = [c.pair.p < 0.05 for c in check.comparisons]
    assert check.hits == sum(rejected)
    assert (check.lo, check.hi) == stats.proportion_interval(sum(rejected), 12)
    assert check.covers and check.luck == "within"
