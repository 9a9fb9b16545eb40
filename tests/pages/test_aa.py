"""The pipeline against itself: every pair of streams, its false positives, and what luck alone would give."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats
from synthetic import context_of, write_run

from projected_grpo.pages import aa


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


def test_every_pair_of_streams_is_compared(tmp_path):
    context = context_of("aa", tmp_path, 3)
    for cell in context.question.cells:
        write_run(tmp_path, cell)
    text = aa.make(context).text
    compared = re.findall(r"^\| (mix \S+).* - .* \| (hack|solve) \|", text, re.M)
    assert len(compared) == 2 * 2 * 3  # settings, measures, pairs of streams
    assert len(re.findall(r"^- (hack|solve), mix (0.125|0.5): std", text, re.M)) == 4
    assert "`vanilla-stream2-m0.5-s{41..43}`" in text
    (tmp_path / "grpo/vanilla-stream2-m0.5-s43/steps.parquet").unlink()
    assert "`vanilla-stream2-m0.5-s43` (missing)" in aa.make(context).text


def streams_apart(results, shift):
    """Return the page, and p by scipy of each comparison, of runs whose streams differ by `shift` beside noise."""
    context, values = context_of("aa", results, 5), {}
    for cell in context.question.cells:
        noise = np.random.default_rng([cell.seed, *cell.id.encode()]).normal(0, 0.02, 2)
        rates = 0.5 + shift * (cell.setting.stream - 1) + noise
        folder = write_run(results, cell, *rates)
        steps = pd.read_parquet(folder / "steps.parquet")
        steps.assign(solve_s=rates[1]).to_parquet(folder / "steps.parquet")
        for measure, rate in zip(aa.MEASURES, rates, strict=True):
            own = values.setdefault((cell.setting.mix, measure), {})
            own.setdefault(cell.setting.stream, []).append(rate)
    pairs = [(own[a], own[b]) for own in values.values() for a, b in ((0, 1), (0, 2), (1, 2))]
    return aa.make(context).text, [scipy_stats.ttest_rel(*pair).pvalue for pair in pairs]


def test_streams_that_differ_are_no_false_positives_by_luck(tmp_path):
    text, _ = streams_apart(tmp_path, 0.3)
    assert "Of 12 comparisons of a setting with itself 12 have p < 0.05" in text
    assert "100% (exact 95% interval 74% to 100%)" in text
    # Dealing anew erases the difference: it says what to expect by luck, whatever was observed.
    assert "That is more than the luck of sampling gives" in text


def test_streams_that_do_not_differ_cover_five_percent(tmp_path):
    text, ps = streams_apart(tmp_path, 0.0)
    hits = sum(p < 0.05 for p in ps)
    low, high = scipy_stats.binomtest(hits, 12).proportion_ci()
    assert f"Of 12 comparisons of a setting with itself {hits} have" in text and low <= 0.05 <= high
    assert "Luck alone gives" in text
