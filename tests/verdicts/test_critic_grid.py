"""The two-by-two of the self-taught critic: its effects against scipy on made-up rounds, and what the page says."""

import numpy as np
import pandas as pd
import pytest
from figures import spilled
from scipy import stats as scipy_stats
from synthetic import context_of, write_run

from projected_grpo.cells.self_taught import CriticKind
from projected_grpo.evaluator.traces import from_rollouts
from projected_grpo.files import write_json
from projected_grpo.measures import stats
from projected_grpo.verdicts import critic_grid
from projected_grpo.verdicts.critic import traced

SEEDS = [41, 42, 43, 44]
KINDS = (CriticKind(), CriticKind(None, True), CriticKind("3M"), CriticKind("3M", True))


def made_up(false, missed):
    """Return values of four critics; false, missed: kind -> the mean of that credit, in all rounds alike."""
    draws = np.random.default_rng(5)
    return {
        kind: {
            name: {seed: mean + 0.01 * draws.normal() for seed in SEEDS}
            for name, mean in {
                "weak_false_credit": false[kind],
                "weak_missed_credit": missed[kind],
                "weak_false_credit_change": 0.0,
                "weak_missed_credit_change": 0.0,
                "same_score": 0.5,
                "hardness": 1.0,
            }.items()
        }
        for kind in KINDS
    }


def test_effects_are_those_of_a_two_by_two_and_both_credits_are_one_family():
    varied = {kind: 0.1 if kind.alike else 0.3 for kind in KINDS}
    values = made_up(dict.fromkeys(KINDS, 0.2), varied)
    found = {(e.cause, e.measure): e.pair for e in critic_grid.effects(values)}
    x = {kind: np.array(list(values[kind]["weak_missed_credit"].values())) for kind in KINDS}
    a, b, c, d = (x[kind] for kind in KINDS)
    for cause, by_seed in {
        "size": (c + d) / 2 - (a + b) / 2,
        "variety": (a + c) / 2 - (b + d) / 2,
        "interaction": (c - d) - (a - b),
    }.items():
        test, own = scipy_stats.ttest_1samp(by_seed, 0), found[cause, "weak_missed_credit"]
        assert own.delta == pytest.approx(by_seed.mean()) and own.p == pytest.approx(test.pvalue)
        assert (own.lo, own.hi) == pytest.approx(test.confidence_interval())
    assert len(found) == 3 * 5
    for family in (critic_grid.CREDITS, critic_grid.OTHERS):
        pairs = [pair for (_, measure), pair in found.items() if measure in family]
        assert [pair.holm for pair in pairs] == pytest.approx(stats.holm([pair.p for pair in pairs]))
    shown = [(e.cause, e.measure) for e in critic_grid.effects(values) if critic_grid.is_shown(e.pair)]
    assert shown == [("variety", "weak_missed_credit")]


def test_without_a_difference_no_effect_is_shown():
    values = made_up(dict.fromkeys(KINDS, 0.2), dict.fromkeys(KINDS, 0.3))
    assert not any(critic_grid.is_shown(effect.pair) for effect in critic_grid.effects(values))


def test_variety_that_matters_at_one_size_alone_is_an_interaction():
    small, small_alike, large, large_alike = KINDS
    values = made_up(dict.fromkeys(KINDS, 0.2), {small: 0.3, small_alike: 0.2, large: 0.2, large_alike: 0.3})
    shown = {e.cause: e.pair.delta for e in critic_grid.effects(values) if critic_grid.is_shown(e.pair)}
    assert shown == {"interaction": pytest.approx(-0.2, abs=0.02)}


def test_a_critic_whose_credit_falls_over_the_rounds_is_named():
    values = made_up(dict.fromkeys(KINDS, 0.2), dict.fromkeys(KINDS, 0.3))
    before = critic_grid.own_changes(values)
    assert len(before) == 8 and not any(critic_grid.is_shown(pair) for *_, pair in before)
    falls = values[KINDS[1]]["weak_missed_credit_change"]
    values[KINDS[1]]["weak_missed_credit_change"] = {seed: own - 0.3 for seed, own in falls.items()}
    shown = [key for *key, pair in critic_grid.own_changes(values) if critic_grid.is_shown(pair)]
    assert shown == [[KINDS[1], "weak_missed_credit"]]


def write_critic(context, kind, seed, folder, credit):
    """Write one critic's rounds: it gives `credit` of the traces whose weak score is low a high score in the end."""
    traces = from_rollouts(*traced(context, seed))
    rows = []
    for number, share in ((0, 1.0), (1, 0.8), (2, credit)):
        for place, trace in enumerate(traces):
            low, weak = place / len(traces) < share, trace.last.phi_after
            phi = (10.0 if low else 2.0) if weak < 5 else weak
            condition = "trained on cards" if number else "before"
            rows.append({"trace_id": trace.id, "round": number, "condition": condition, "phi": phi})
            rows[-1] |= {"weak_phi": weak, "problem": None}
    path = context.results / folder
    path.mkdir(parents=True)
    pd.DataFrame(rows).to_parquet(path / "evaluations.parquet")
    rounds = [{"round": n, "hardness": float(n), "pool_hardness": 1.0} for n in (1, 2)]
    write_json(path / "run.json", {"seed": seed, "model": folder, "rounds": rounds})


@pytest.fixture
def context(tmp_path):
    made = context_of("self_taught_grid", tmp_path, SEEDS)
    for seed in SEEDS:
        for cell in made.traced(seed):
            folder = write_run(tmp_path, cell)
            frame = pd.read_parquet(folder / "rollouts.parquet")
            frame["passed"] = frame["gt_pass"] | frame["channel"]
            frame.to_parquet(folder / "rollouts.parquet")
    draws = np.random.default_rng(2)
    for kind, folders in made.critics().items():
        for seed, folder in folders.items():
            write_critic(made, kind, seed, folder, 0.2 + 0.5 * kind.alike + 0.1 * draws.random())
    return made


def test_the_page_says_which_of_the_two_it_is(context):
    assert list(context.critics()) == list(KINDS)
    assert context.critics()[CriticKind("3M", True)][41] == "self_taught/small-s41-3M-alike"
    needed = critic_grid.needs(context)
    assert len(needed) == len(set(needed)) == 4 * len(SEEDS) * 2 + 2 * len(SEEDS)
    made = critic_grid.make(context)
    text, frame = made.text, made.frames[".parquet"]
    assert "4 replications are a look" in text and "**Shown: variety lowers false credit (" in text
    assert "| 3M, vanilla alone |" in text and "| 0.9M, vanilla and gt_only |" in text
    assert set(frame["measure"]) == set(critic_grid.MEASURES) and set(frame["seed"]) == set(SEEDS)
    assert frame[frame.measure == "hardness"]["value"].eq(1.0).all()
    assert not spilled(made.figures["credit"])


def test_without_a_second_size_there_is_one_critic(tmp_path):
    context = context_of("self_taught_grid", tmp_path, SEEDS)
    assert len(context.config.critic_kinds) == 4
    for changes in ({"grid": None}, {"critic": "server"}):
        taught = context.config.self_taught.model_copy(update=changes)
        assert context.config.model_copy(update={"self_taught": taught}).critic_kinds == (CriticKind(),)
