"""The two-by-two of the self-taught critic: its effects against scipy on made-up rounds, and what the page says."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from figures import spilled
from scipy import stats as scipy_stats
from synthetic import context_of, write_run

from projected_grpo.evaluator.kinds import CriticKind, critic_kinds
from projected_grpo.evaluator.traces import from_rollouts
from projected_grpo.files import write_json
from projected_grpo.measures import stats
from projected_grpo.pages import critic_grid, needs
from projected_grpo.pages.stage import Numbers
from projected_grpo.pages.words import p_value

SEEDS = [41, 42, 43, 44]
KINDS = (CriticKind(), CriticKind(None, True), CriticKind("3M"), CriticKind("3M", True))


NAMES = [critic_grid.name_of(kind, "0.9M") for kind in KINDS]
PLAIN = SimpleNamespace(name="self_taught_grid", config=SimpleNamespace(trial=False, seeds=(41, 42)))


def made_up(false, missed, change=()):
    """Return the numbers of four critics whose credits have these means, and the page; change: of missed credit."""
    draws, records = np.random.default_rng(5), []
    for place, name in enumerate(NAMES):
        means = {"weak_false_credit": false[place], "weak_missed_credit": missed[place], "same_score": 0.5}
        means |= {"weak_false_credit_change": 0.0, "weak_missed_credit_change": dict(change).get(place, 0.0)}
        means |= {"hardness_change": 1.0}
        records += [
            (name, m, seed, mean + 0.01 * draws.normal()) for m, mean in means.items() for seed in SEEDS
        ]
    numbers = Numbers(records)
    return numbers, critic_grid.page_of(PLAIN, numbers, NAMES, []).text


def test_effects_are_those_of_a_two_by_two():
    numbers, text = made_up([0.2] * 4, [0.3, 0.1, 0.3, 0.1])
    x = [np.array(list(numbers.of(name, "weak_missed_credit").values())) for name in NAMES]
    a, b, c, d = x
    for cause, by_seed in {
        "size": (c + d) / 2 - (a + b) / 2,
        "variety": (a + c) / 2 - (b + d) / 2,
        "interaction": (c - d) - (a - b),
    }.items():
        test = scipy_stats.ttest_1samp(by_seed, 0)
        lo, hi = test.confidence_interval()
        line = re.search(rf"^\| {cause} \| missed credit \| (.*) \|$", text, re.M)[1].split(" | ")
        assert line[0] == f"{by_seed.mean():+.3f} [{lo:+.3f}, {hi:+.3f}]"
        assert line[1] == p_value(test.pvalue) and line[3] == "4"
    assert "**Shown: variety raises missed credit (" in text


def test_without_a_difference_no_effect_is_shown():
    assert "is shown to change either credit.**" in made_up([0.2] * 4, [0.3] * 4)[1]


def test_nothing_is_said_of_effects_while_a_critic_is_missing():
    numbers, _ = made_up([0.2] * 4, [0.3] * 4)
    numbers.values[NAMES[0]] = {}
    text = critic_grid.page_of(PLAIN, numbers, NAMES, []).text
    assert "**No replication has all four critics.**" in text


def test_variety_that_matters_at_one_size_alone_is_an_interaction():
    text = made_up([0.2] * 4, [0.3, 0.2, 0.2, 0.3])[1]
    assert "**Shown: interaction lowers missed credit (-0.2" in text and "variety raises" not in text


def test_a_critic_whose_credit_falls_over_the_rounds_is_named():
    own = "last less first round, of 0.9M, vanilla alone: -0.3"
    assert own not in made_up([0.2] * 4, [0.3] * 4)[1]
    assert own in made_up([0.2] * 4, [0.3] * 4, {1: -0.3}.items())[1]


def test_comparisons_of_one_measure_are_one_family():
    numbers, _ = made_up([0.2, 0.21, 0.22, 0.2], [0.3] * 4)
    found = numbers.compared({name: {name: 1, NAMES[0]: -1} for name in NAMES[1:]}, ["weak_false_credit"])
    assert [line["p_holm"] for line in found] == pytest.approx(stats.holm([line["p"] for line in found]))


def write_critic(context, kind, seed, folder, credit):
    """Write one critic's rounds: it gives `credit` of the traces whose weak score is low a high score in the end."""
    traces = from_rollouts(*needs.traced_rollouts(context, seed))
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
    write_json(path / "run.json", {"seed": seed, "model": folder, "critic": "trained:base", "rounds": rounds})


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
    needed = needs.critic_grid(context)
    assert len(needed) == len(set(needed)) == 4 * len(SEEDS) * 2 + 2 * len(SEEDS)
    made = critic_grid.make(context)
    text, frame = made.text, made.frames[".parquet"]
    assert "4 replications are a look" in text and "**Shown: variety lowers false credit (" in text
    assert "| 3M, vanilla alone |" in text and "| 0.9M, vanilla and gt_only |" in text
    assert set(frame["measure"]) == {*critic_grid.LAST, *critic_grid.CHANGES, *critic_grid.HARDER}
    assert set(frame["seed"]) == set(SEEDS)
    assert frame[frame.measure == "hardness_change"]["value"].eq(1.0).all()
    assert not any(map(spilled, made.figures.values())) and set(made.figures) == {"false", "missed"}


def test_without_a_second_size_there_is_one_critic(tmp_path):
    context = context_of("self_taught_grid", tmp_path, SEEDS)
    assert len(critic_kinds(context.config)) == 4
    for changes in ({"grid": None}, {"critic": "server"}):
        taught = context.config.self_taught.model_copy(update=changes)
        assert critic_kinds(context.config.model_copy(update={"self_taught": taught})) == (CriticKind(),)
