"""The plane's numbers against brute force: isotonic means, honest at equal hack, its jackknife."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats
from synthetic import ROOT, deployed_rows, read_config, real_questions

from projected_grpo.measures import beside, estimates, numbers, plane
from projected_grpo.measures.measure import MEASURES
from projected_grpo.measures.measured import measured
from projected_grpo.measures.plane import BASE, HACK, HONEST, Frontier, frontier_of, other_groups

SEEDS = range(41, 47)


def by_seed(values):
    return dict(zip(SEEDS, values, strict=True))


def of_rates(question, rates):
    """The question measured, where both rates of a row at a seed are `rates[row][seed]`; without one it has no run."""
    records = [
        {**numbers.of_cell(cell), "measure": name, "value": rates.get(row.name, {}).get(cell.seed)}
        for row in question.rows
        for cell in row.cells
        for name in (HACK, HONEST)
    ]
    return measured(question, pd.DataFrame(records, columns=numbers.COLUMNS).dropna(subset="value"))


def max_min(values):
    """The isotonic fit by its formula: max over starts of the min over ends of means."""
    n = len(values)
    return [max(min(np.mean(values[a : b + 1]) for b in range(i, n)) for a in range(i + 1)) for i in range(n)]


def excess_by_hand(hack_points, honest_points, hack, honest, seeds):
    """Honest minus the frontier's at the same hack, piece by piece."""
    x = max_min([np.mean([hack_points[s][i] for s in seeds]) for i in range(len(hack_points[seeds[0]]))])
    y = [np.mean([honest_points[s][i] for s in seeds]) for i in range(len(x))]
    places = sorted(set(np.round(x, 12)))
    pooled = [np.mean([b for a, b in zip(x, y, strict=True) if round(a, 12) == place]) for place in places]
    at, own = np.mean([hack[s] for s in seeds]), np.mean([honest[s] for s in seeds])
    at = min(max(at, places[0]), places[-1])
    for a, b, low, high in zip(places, places[1:], pooled, pooled[1:], strict=False):
        if a <= at <= b:
            return own - (low + (high - low) * (at - a) / (b - a))
    return own - pooled[0]


@pytest.fixture
def made():
    rng = np.random.default_rng(3)
    # The second and the third dose pool in most subsets of seeds.
    hack = {s: np.array([0.05, 0.3, 0.28, 0.5, 0.7]) + rng.normal(0, 0.05, 5) for s in SEEDS}
    honest = {s: np.array([0.4, 0.38, 0.37, 0.3, 0.2]) + rng.normal(0, 0.04, 5) for s in SEEDS}
    return Frontier(("the base", "a", "b", "c", "vanilla"), hack, honest)


def test_a_frontier_s_hacking_is_the_max_min_formula_and_each_pool_s_honest_its_mean():
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 5, 9):
        for _ in range(20):
            hack, honest = rng.normal(size=(2, n)).round(1)
            x, y = Frontier(("",) * n, {41: hack}, {41: honest}).curve()
            fit = np.round(max_min(hack), 12)
            assert x == pytest.approx(np.unique(fit))
            assert y == pytest.approx([honest[fit == level].mean() for level in np.unique(fit)])


@pytest.mark.parametrize("share", [0.001, 0.3, 0.6, 0.999])  # at both ends some replicates lie outside
def test_excess_and_its_jackknife_by_loop(made, share):
    rng = np.random.default_rng(7)
    (low, *_, high), _ = made.curve()
    noise = rng.normal(0, 0.03, 6)
    hack = by_seed(low + share * (high - low) + noise - noise.mean())
    honest = by_seed(0.42 + rng.normal(0, 0.05, 6))
    pair = made.excess(hack, honest)
    seeds = list(SEEDS)
    whole = excess_by_hand(made.hack, made.honest, hack, honest, seeds)
    without = [
        excess_by_hand(made.hack, made.honest, hack, honest, [s for s in seeds if s != out]) for out in seeds
    ]
    se = math.sqrt(5 / 6 * sum((w - np.mean(without)) ** 2 for w in without))
    t = scipy_stats.t.ppf(0.975, 5)
    assert pair.delta == pytest.approx(whole)
    assert [pair.lo, pair.hi] == pytest.approx([whole - t * se, whole + t * se])
    assert pair.p == pytest.approx(2 * scipy_stats.t.sf(abs(whole) / se, 5)) and pair.n == 6


def test_what_hacks_less_than_the_base_is_paired_with_it_though_less_training_pools_with_it():
    rng = np.random.default_rng(5)
    hack = {s: np.array([0.006, 0.004, 0.7]) for s in SEEDS}  # the second dose hacks less than the base
    honest = {s: np.array([0.3, 0.45, 0.15]) + rng.normal(0, 0.02) for s in SEEDS}
    front = Frontier((BASE, "less", "vanilla"), hack, honest)
    own = by_seed(0.42 + rng.normal(0, 0.02, 6))
    pair = front.excess(by_seed([0.0] * 6), own)
    test = scipy_stats.ttest_rel([own[s] for s in SEEDS], [honest[s][0] for s in SEEDS])
    assert pair.delta == pytest.approx(np.mean([own[s] - honest[s][0] for s in SEEDS]))
    assert pair.p == pytest.approx(test.pvalue)
    unjudged = replace(front, names=("less x0.1", *front.names[1:]))
    assert unjudged.excess(by_seed([0.0] * 6), own) is None


def test_what_hacks_more_than_vanilla_has_no_equal_though_a_smaller_dose_hacks_more_still():
    hack = {s: np.array([0.0, 0.74, 0.7]) for s in SEEDS}
    front = Frontier((BASE, "less", "vanilla"), hack, {s: np.array([0.3, 0.2, 0.1]) for s in SEEDS})
    assert front.excess(by_seed([0.715] * 6), by_seed([0.4] * 6)) is None
    assert front.excess(by_seed([0.7] * 6), by_seed([0.4] * 6)) is not None
    assert front.excess({}, {}) is None


def test_seeds_without_a_dose_keep_the_line_of_those_that_they_have(made):
    """A dose that was run at later seeds alone changes nothing at the first ones, nor over all of them."""
    late = SEEDS[4:]
    hack = {s: np.where([s in late or i != 2 for i in range(5)], of, np.nan) for s, of in made.hack.items()}
    own = by_seed([0.32, 0.4, 0.45, 0.3, 0.35, 0.42]), by_seed([0.4, 0.5, 0.45, 0.4, 0.6, 0.5])
    fewer = Frontier(
        ("the base", "a", "c", "vanilla"),
        *({s: np.delete(of[s], 2) for s in of} for of in (made.hack, made.honest)),
    )
    gappy = replace(made, hack=hack)
    first = [{s: of[s] for s in SEEDS[:4]} for of in own]
    assert gappy.excess(*first) == fewer.excess(*first)
    assert gappy.excess(*own) == fewer.excess(*own)
    last = [{s: of[s] for s in late} for of in own]
    assert gappy.excess(*last) == made.excess(*last) != fewer.excess(*last)
    for got, expected in zip(gappy.curve(), fewer.curve(), strict=True):
        assert got == pytest.approx(expected)


def test_one_seed_has_a_distance_and_no_test(made):
    one = {41: 0.4}, {41: 0.5}
    pair = made.excess(*one)
    assert pair.n == 1 and pair.p is None and pair.lo is None
    assert pair.delta == pytest.approx(excess_by_hand(made.hack, made.honest, *one, [41]))


def test_a_defence_on_the_frontier_has_nothing_over_it(made):
    hack, honest = ({s: of[s][3] for s in SEEDS} for of in (made.hack, made.honest))
    assert made.excess(hack, honest).delta == pytest.approx(0, abs=1e-12)


def test_early_ends_of_vanilla_stand_on_the_frontier_by_their_dose(tmp_path):
    """Two of them, around `less x0.25`; their rates are those of their rows, and the file adds up with others."""
    questions = real_questions(list(SEEDS))[1]
    question = questions["Q16"]
    kept = tuple(row for row in question.rows if row.name in ("vanilla", "less x0.25"))
    question = question.model_copy(update={"rows": kept})
    level, hack = {"vanilla": 0.6, "less x0.25": 0.3}, {}
    records = [
        {**numbers.of_cell(cell), "measure": name, "value": value}
        for row in question.rows
        for cell in row.cells
        for name, value in ((HACK, level[row.name]), (HONEST, 0.2))
    ]
    for file, cell in beside.early_ends(question).items():
        rows = [
            deployed_rows(cell, rate).assign(after=after, dose=dose)
            for after, dose, rate in ((2, 0.1, 0.1), (4, 0.4, 0.5))
        ]
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        pd.concat(rows).to_parquet(path)
        known = pd.concat(rows).query("panel == 'known'").groupby("after")["channel"].mean()
        hack[cell.seed] = [known[2], 0.3, known[4], 0.6]
    stopped = numbers.tidy(numbers.of_stopped(tmp_path, [question]))
    frame = pd.concat([pd.DataFrame(records), stopped]).reindex(columns=numbers.COLUMNS)
    front = frontier_of(measured(question, frame))
    assert front.names == ("stopped at 2", "less x0.25", "stopped at 4", "vanilla")
    for seed, own in hack.items():
        assert front.hack[seed] == pytest.approx(own)
    numbers.write(frame, tmp_path / "runs.csv")  # they are kept as runs are
    again = frontier_of(measured(question, numbers.read(tmp_path / "runs.csv")))
    plain = [numbers.BASE.format(cell.model) for cell in question.cells]  # base and vanilla alone are no line
    base = [
        {"cell": name, "seed": seed, "model": "m", "measure": one, "value": 0.1}
        for seed, name in zip(SEEDS, plain, strict=False)
        for one in (HACK, HONEST)
    ]
    vanilla = frame[frame["cell"].str.startswith("vanilla")]
    ends = pd.concat([pd.DataFrame(base, columns=numbers.COLUMNS), vanilla])
    assert frontier_of(measured(question, ends)) is None
    assert again.names == front.names and again.hack[43] == pytest.approx(front.hack[43])


def test_rows_without_a_seed_in_common_have_blocks_of_their_own():
    own = measured(real_questions([41])[1]["Q23"], pd.DataFrame(columns=numbers.COLUMNS))
    first, fresh = list(range(61, 71)), list(range(71, 76))

    def blocks(**seeds):
        seeds = {"vanilla": range(60, 80), **seeds}
        rates = {name: {HACK: dict.fromkeys(some, 0.1)} for name, some in seeds.items()}
        return plane.blocks(replace(own, values=rates))

    assert blocks() == []
    assert blocks(screen=first, erase=first[1:], kl=[]) == [first]
    assert blocks(screen=first, kl=fresh, advantage=first + fresh) == [first, fresh]
    assert blocks(screen=first, kl=[70, *fresh]) == [first + fresh]


def test_a_plane_is_drawn_on_the_seeds_that_all_rows_have_where_these_are_five():
    own = measured(real_questions([41])[1]["Q23"], pd.DataFrame(columns=numbers.COLUMNS))
    common, more = set(range(71, 76)), {61, 62}

    def seeds(**of):
        rates = {name: {HACK: dict.fromkeys(some, 0.1)} for name, some in of.items()}
        parts = plane.panels(replace(own, values=rates))
        return [set(part.seeds) for part in parts], [plane.are_paired(part) for part in parts]

    assert seeds(vanilla=common | more, screen=common, kl=common | {61}) == ([common], [True])
    assert seeds(vanilla=common, screen=common - {71}) == ([common - {71}], [True])
    assert seeds(vanilla=common, screen=common, kl=common - {71}) == ([common], [False])
    assert seeds(vanilla=common | more, screen=common, kl=more) == ([more, common], [True, True])
    assert seeds(vanilla=common | more, screen=common, kl={71}) == ([common], [True])  # one seed: no point
    assert seeds(vanilla={71}, screen={71}) == ([{71}], [True])  # unless no row has more


def test_a_mean_stands_beside_its_difference_on_the_same_seeds():
    question = real_questions([71, 72, 73])[1]["Q23"]
    rates = {"vanilla": {71: 0.8, 72: 0.6}, "screen": {71: 0.1, 72: 0.3, 73: 0.8}}
    own = of_rates(question, rates)
    lines = estimates.estimates(own).query("row == 'screen' and measure == @HACK").set_index("contrast")
    assert lines.loc["baseline", "mean"] == pytest.approx(0.2) and lines.loc["baseline", "n"] == 2
    assert lines.loc["rate", "mean"] == pytest.approx(0.4) and lines.loc["rate", "n"] == 3


def test_what_is_measured_among_some_seeds_has_nothing_of_the_others():
    own = measured(real_questions([41])[1]["Q23"], pd.DataFrame(columns=numbers.COLUMNS))
    rates = {HACK: {61: 0.1, 71: 0.9}, HONEST: {71: 0.2}}
    whole = replace(own, values={"screen": rates}, base=rates, stopped={2: {HACK: {71: 0.3}}, 4: rates})
    some, kept = whole.among([61]), {HACK: {61: 0.1}}
    assert (some.values, some.base, some.stopped) == ({"screen": kept}, kept, {4: kept})


def test_lost_honest_work_is_that_of_the_seeds_that_a_row_shares_with_both():
    """Seed 71 loses .6 and 72 .2; a row that saves .1 of each seed's is not held against the other's."""
    own = measured(real_questions([41])[1]["Q16"], pd.DataFrame(columns=numbers.COLUMNS))
    honest = {
        "vanilla": {61: 0.5, 71: 0.1, 72: 0.3},
        "vanilla, no teacher": {71: 0.7, 72: 0.5, 73: 0.9},
        "screen": {71: 0.2},
        "kl": {61: 0.9, 71: 0.2, 72: 0.4},
        "inoculate": {61: 0.9, 73: 0.9},  # on no seed of both
    }
    rates = {name: {HONEST: by_seed} for name, by_seed in honest.items()}
    shares = {"vanilla": 0, "vanilla, no teacher": 1, "screen": 0.1 / 0.6, "kl": 0.2 / 0.8}
    found = plane.recovered(replace(own, values=rates))
    assert {name: one.share for name, one in found.items()} == pytest.approx(shares)
    assert {name: one.n for name, one in found.items()} == {name: 1 + (name != "screen") for name in shares}
    assert plane.recovered(replace(own, values={"vanilla": rates["vanilla"]})) == {}


def test_placebos_of_one_pool_are_one_point_against_the_baseline_that_they_share():
    """Their mean by seed, where each has a run; no member of the population that other rows are placed in."""
    question = real_questions([71, 72, 73])[1]["Q23"]
    names = [row.name for row in question.rows if row.pooled]
    rates = {name: {71: n / 100, 72: 0.5} for n, name in enumerate(names)}
    rates[names[0]][73] = 0.9
    own = of_rates(question, rates)
    pool, placed = own.rows["erase, text placebos"], own.rows["erase, honesty_text"].place_in
    assert own.of(pool.name, HACK) == pytest.approx({71: 0.045, 72: 0.5})
    assert pool.baseline == "vanilla" and plane.vanilla_of(own) == "vanilla"
    assert [name for name, row in own.rows.items() if row.population == placed] == names
    drawn = plane.defending(own)
    assert pool.name in drawn and "erase, honesty_text" in drawn and not set(names) & set(drawn)
    assert plane.must_give(pool) == plane.NOTHING and pool.name not in own.claims


def test_figures_of_other_groups_stand_beside_rows_of_the_plane():
    found = other_groups()
    rows = {row.name for row in real_questions([41])[1]["Q16"].rows}
    assert set(found["row"]) - {BASE} <= rows and found[["hack", "performance"]].notna().all(axis=None)
    text = (ROOT / "docs/defences.md").read_text()
    for one in found.itertuples():  # as the page has them
        assert f"| {one.hack:.3f} | {one.performance:.3f} |" in text


def test_seven_outcomes_are_primary_and_those_that_are_chosen_are_rows_with_such_a_measure():
    config, questions = real_questions([41])
    assert len(config.primary.outcomes) == 7 and config.primary.seeds == tuple(range(51, 61))
    for (question, row, measure, _), date in config.primary.dates.items():
        assert row in measured(questions[question], pd.DataFrame(columns=numbers.COLUMNS)).rows
        assert MEASURES[measure].compared and date == "2026-11-25"
    assert all(one.choice for one in config.primary.outcomes if one.row is None)


def test_a_base_that_all_seeds_share_counts_for_each():
    _, questions = read_config(ROOT / "config/smollm2.yaml", seeds=[41, 42, 43])
    line = {"cell": "base/smollm2-q4", "seed": 41, "measure": "known_honest", "value": 0.33}
    found = numbers.of_base(questions["Q16"], pd.DataFrame([line]))
    assert found == {"known_honest": {41: 0.33, 42: 0.33, 43: 0.33}}


def test_pairs_that_a_defender_can_have_are_told_from_the_teachers_exploits():
    rows = {row.name: row for row in real_questions([41])[1]["Q23"].rows}
    given = {"erase": plane.EXPLOITS, "erase, prog_wide": plane.HARMLESS}
    given |= {"erase, random": plane.NOTHING, "screen": "monitor"}
    assert {name: plane.must_give(rows[name]) for name in given} == given
