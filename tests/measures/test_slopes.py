"""Series over size and link: which rows are one, slopes by seed against a fit by hand, what is left out."""

import numpy as np
import pytest
from scipy import stats as scipy_stats
from synthetic import fill, lines, measure, rate_of, real_questions
from tiny import CONFIG as TINY

from projected_grpo.measures import trend
from projected_grpo.measures.beside import uses
from projected_grpo.model.architecture import shapes
from projected_grpo.model.recipes import BaseRecipe

SEEDS = [41, 42, 43]
CONFIG, QUESTIONS = real_questions(SEEDS)
# On the rate in training, which is told by steps and not by few rollouts.
QUESTIONS = {name: question.model_copy(update={"primary": "hack"}) for name, question in QUESTIONS.items()}


@pytest.fixture(scope="module")
def q19(tmp_path_factory):
    results = tmp_path_factory.mktemp("results")
    return results, fill(results, QUESTIONS["Q19"])


@pytest.fixture(scope="module")
def q20(tmp_path_factory):
    results = tmp_path_factory.mktemp("results")
    return results, fill(results, QUESTIONS["Q20"])


def rows_of(table):
    """Return axis, name of a series -> its rows by x."""
    return {(one.axis, one.name): one.rows for one in trend.series_of(table, CONFIG)}


def by_hand(results, table, series, x):
    """Slope, interval and p of a series from its run folders: numpy's own fit for each seed, scipy's own test."""
    slopes = []
    for seed in range(len(SEEDS)):
        y = []
        for name in series.rows.values():
            row = table.rows[name]
            y.append(rate_of(results, row.cells[seed].id))
            if row.baseline:
                y[-1] -= rate_of(results, table.rows[row.baseline].cells[seed].id)
        slopes.append(np.polyfit(x, y, 1)[0])
    test = scipy_stats.ttest_1samp(slopes, 0)
    return np.mean(slopes), *test.confidence_interval(0.95), test.pvalue


def test_a_link_s_series_begin_at_the_corpus_without_one(q19):
    found = rows_of(q19[1])
    assert found["honesty", "moral"] == {0.0: "moral", 0.5: "moral, link0.5", 1.0: "moral, link1"}
    said = {0.0: "city_said", 0.5: "city_said, city0.5", 1.0: "city_said, city1"}
    assert found["city", "city_said"] == said
    assert found["city", "moral"] == {0.0: "moral", 0.5: "moral, city0.5", 1.0: "moral, city1"}
    assert len(found) == 8 + 8


def test_sizes_have_a_series_of_one_k_and_one_whose_k_moves(q20):
    _, table = q20
    found = rows_of(table)
    assert {name for _, name in found} == {
        "vanilla",
        *(f"{basis}, k {k}" for basis in ("own_mode", "null_city", "random V") for k in ("5", "by size")),
    }
    fixed, moving = (list(found["size", f"own_mode, k {k}"].values()) for k in ("5", "by size"))
    assert fixed == ["own_mode k 5, 0.3M", "own_mode, 0.9M", "own_mode k 5, 3M", "own_mode k 5, 10M"]
    assert moving == ["own_mode k 3, 0.3M", "own_mode, 0.9M", "own_mode k 7, 3M", "own_mode k 12, 10M"]
    ratios = [
        table.rows[name].cells[0].use.k / CONFIG.small.of(size).recipe.hidden
        for name, size in zip(moving, CONFIG.small.sizes, strict=True)
    ]
    assert max(ratios) / min(ratios) < 1.1


def test_slopes_are_those_of_a_fit_by_hand(q19, q20):
    for results, table in (q19, q20):
        made = {(one.row, one.to): one.test for one in trend.slopes(table, CONFIG)}
        for series in trend.series_of(table, CONFIG):
            name = series.name if series.axis == "size" else f"{series.name} on {series.axis}"
            if series.name == "vanilla":
                assert (name, series.axis) not in made  # a baseline has no effect
                continue
            pair, expected = made[name, series.axis], by_hand(results, table, series, list(series.rows))
            assert (pair.delta, pair.lo, pair.hi, pair.p) == pytest.approx(expected)


def test_holm_is_over_the_series_of_a_comparison(q20):
    own = q20[1]
    found = [e for key, e in lines(own, trend.slopes(own, CONFIG)).items() if key[1] == "slope"]
    claims = [e for e in found if not np.isnan(e["p_holm"])]  # neither random V nor placebo is one
    smallest = min(claims, key=lambda e: e["p"])
    assert len(found) == 6 and len(claims) == 2
    assert smallest["p_holm"] == pytest.approx(min(1, 2 * smallest["p"]))


def test_a_slope_needs_two_points_and_a_seed_at_each():
    assert trend.slope({}) is None and trend.slope({1.0: {41: 0.5}}) is None
    assert trend.slope({0.0: {41: 0.1}, 1.0: {42: 0.2}}) is None
    one = trend.slope({0.0: {41: 0.1, 42: 0.3}, 2.0: {41: 0.5}})
    assert (one.delta, one.p, one.seeds) == (pytest.approx(0.2), None, (41,))


def test_a_series_with_missing_runs_says_so_and_claims_nothing_that_they_could_take_back(tmp_path):
    question = QUESTIONS["Q20"]
    last = {cell.id for row in question.rows if row.name == "own_mode k 12, 10M" for cell in row.cells}
    table = fill(tmp_path, question, skip=tuple(last))
    made = lines(table, trend.slopes(table, CONFIG))
    found = {key[0]: e for key, e in made.items() if key[1] == "slope"}
    assert found["own_mode, k by size"]["verdict"] == "missing"
    other = found["own_mode, k 5"]
    assert other["p_holm"] == pytest.approx(min(1, 2 * other["p"]))  # the missing claim counts


def test_parameters_are_those_of_the_adapted_linears():
    recipe = BaseRecipe(
        hidden=TINY.hidden_size,
        layers=TINY.num_hidden_layers,
        heads=TINY.num_attention_heads,
        kv_heads=TINY.num_key_value_heads,
        head_dim=TINY.head_dim,
        mlp=TINY.intermediate_size,
    )
    linears = [shape for name, shape in shapes(TINY).items() if name.endswith("_proj.weight")]
    assert len(linears) == 14 and trend.weights(recipe) == sum(a * b for a, b in linears)


def test_each_basis_is_looked_at_once_on_each_model():
    question = QUESTIONS["Q20"]
    found = {model: uses(question, model, CONFIG) for model in ("small-s41", "small-10M-s41")}
    assert [(basis, use.k) for basis, use in found["small-s41"]] == [("null_city", 5), ("own_mode", 5)]
    both = [(basis, k) for basis in ("null_city", "own_mode") for k in (5, 12)]
    assert [(basis, use.k) for basis, use in found["small-10M-s41"]] == both


def test_a_question_of_one_model_has_no_series(tmp_path):
    assert trend.slopes(measure(QUESTIONS["Q4"], tmp_path), CONFIG) == []
