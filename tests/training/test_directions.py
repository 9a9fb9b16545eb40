"""Directions of the residual stream: the concept, and the arms and the monitor that act by it, against loops."""

import statistics

import numpy as np
import pytest
import torch
from test_train import PAIRS, explicit_gradient, finish, make_arm, make_run
from tiny import tiny_model

from projected_grpo.cells.row_setting import make_setting
from projected_grpo.environment.prompts import messages_for
from projected_grpo.errors import UserError
from projected_grpo.method.concept import make_concept
from projected_grpo.method.loss import advantages
from projected_grpo.model import decoder
from projected_grpo.model.batch import Batch
from projected_grpo.training import step as step_module
from projected_grpo.training.gradient import policy_gradient
from projected_grpo.training.job import pool_batches

LAYER = 0  # the middle one of two


def stream(model, prompt, completion, layer=LAYER):
    """A row's residual stream `[tokens, d]` in float64, by itself."""
    return model.residuals(Batch([(prompt, completion)]), layer).double()


def exact(policy, theta=None):
    """The model in float64, at theta."""
    model, weights = tiny_model(dtype=torch.float64), {}
    for name, delta in (theta or policy.adapter.zeros()).items():
        U, Vh = (t.double() for t in policy.adapter.svd[name])
        weights[name] = model.weights[f"{name}.weight"] + U @ torch.diag(delta.double()) @ Vh
    return model.replace(weights)


def by_hand(run, direction=None):
    """Direction, standard deviation, mean length and the pairs' scores, from one forward a row in float64."""
    model, tokenizer = exact(run.policy), run.policy.tokenizer
    means = {}
    for side in ("hack", "clean"):
        rows = [
            (tokenizer.encode_chat(pair.prompt), [*tokenizer.encode(getattr(pair, side)), tokenizer.end])
            for pair in PAIRS.pairs
        ]
        means[side] = [stream(model, *row).mean(0) for row in rows]
    if direction is None:
        direction = sum(means["hack"]) / 3 - sum(means["clean"]) / 3
        direction = direction / direction.norm()
    scores, lengths = [], []
    for problem in run.problems:
        for row in run.pool[str(problem.id)]:
            x = stream(model, tokenizer.encode_chat(messages_for(problem)), row.tokens)
            scores.append(float(x.mean(0) @ direction))
            lengths += [float(v.norm()) for v in x]
    sd = statistics.stdev(scores)
    sides = {side: [float(m @ direction) / sd for m in own] for side, own in means.items()}
    return direction, sd, sum(lengths) / len(lengths), sides


@pytest.mark.parametrize("drawn", ["none", "random"])
def test_a_concept_is_the_mean_difference_of_its_pairs_in_units_of_the_pool(drawn):
    run = make_run(arm="advantage", direction="own", drawn=drawn)
    concept = run.arm.given.concept
    direction, sd, norm, sides = by_hand(run, concept.direction.double() if drawn == "random" else None)
    torch.testing.assert_close(concept.direction.double(), direction, atol=1e-5, rtol=1e-4)
    assert float(concept.direction.norm()) == pytest.approx(1, abs=1e-6) and concept.layer == LAYER
    assert (concept.sd, concept.norm) == (pytest.approx(sd, rel=1e-4), pytest.approx(norm, rel=1e-5))
    assert concept.hack.tolist() == pytest.approx(sides["hack"], rel=1e-3)
    assert concept.clean.tolist() == pytest.approx(sides["clean"], rel=1e-3)
    middle = (sum(sides["hack"]) / 3 + sum(sides["clean"]) / 3) / 2
    assert concept.threshold == pytest.approx(middle, abs=1e-3)
    ends = sorted([np.quantile(sides["hack"], 0.05), np.quantile(sides["clean"], 0.95)])
    assert concept.cuts == pytest.approx(ends, abs=1e-3)


def test_a_random_direction_hangs_on_the_seed_alone():
    run = make_run()
    batches = pool_batches(run.policy.tokenizer, run.problems, run.pool)
    drawn = [make_concept(run.policy, PAIRS, batches, 1, "random", seed).direction for seed in (41, 41, 42)]
    assert torch.equal(drawn[0], drawn[1]) and not torch.allclose(drawn[0], drawn[2], atol=0.1)
    with pytest.raises(UserError, match="layer: 2, allowed: 0 to 1"):
        make_concept(run.policy, PAIRS, batches, 2, "none", 41)
    with pytest.raises(UserError, match="0 rows of the pool"):
        make_concept(run.policy, PAIRS, [], 1, "none", 41)


def spied(run, folder, monkeypatch):
    """Train a run; return (groups, A, arguments behind them, gradient, weights in use) of each step."""
    seen = []

    def spy(policy, model, groups, A, *rest):
        got = policy_gradient(policy, model, groups, A, *rest)
        seen.append((groups, A, rest, got, run.arm.sampled_theta(policy.theta)))
        return got

    monkeypatch.setattr(step_module, "policy_gradient", spy)
    rows, rollouts, _ = finish(run, folder)
    return rows, rollouts, seen


def scores_of(run, group, theta):
    """The scores of a group's rows by hand, at the weights that sampled them."""
    concept, model = run.arm.given.concept, exact(run.policy, theta)
    means = [stream(model, group.prompt, row.tokens).mean(0) for row in group.rows]
    return [float(mean @ concept.direction.double()) / concept.sd for mean in means]


def test_advantages_lose_the_centred_score_times_the_weight(tmp_path, monkeypatch):
    run = make_run(arm="advantage", direction="own", weight=0.7)
    _, rollouts, seen = spied(run, tmp_path / "run", monkeypatch)
    for step, (groups, A, _, _, theta) in enumerate(seen, 1):
        for group, values in zip(groups, A, strict=True):
            rewards = torch.tensor([row.row["reward"] for row in group.rows], dtype=torch.float64)
            scores = scores_of(run, group, theta)
            mean = sum(scores) / len(scores)
            pairs = zip(advantages(rewards).tolist(), scores, strict=True)
            assert values == pytest.approx([a - 0.7 * (s - mean) for a, s in pairs], abs=1e-3)
            told = [
                row["concept"]
                for row in rollouts
                if (row["step"], row["problem_id"]) == (step, str(group.problem.id))
            ]
            assert told == pytest.approx(scores[: len(group.live)], abs=1e-3)


@pytest.mark.parametrize("arm", ["steer", "caft"])
@pytest.mark.parametrize("beta", [0.0, 0.3])
def test_the_gradient_is_taken_through_the_changed_stream(arm, beta, tmp_path, monkeypatch):
    run = make_run(arm=arm, direction="own", grpo={"beta": beta, "steps": 2})
    _, _, seen = spied(run, tmp_path / "run", monkeypatch)
    concept = run.arm.given.concept
    u = concept.direction.double()

    def changed(layer, x):
        if layer != LAYER:
            return x
        rows = [
            x[i] + 0.1 * concept.norm * u if arm == "steer" else x[i] - (x[i] @ u) * u for i in range(len(x))
        ]
        return torch.stack(rows)

    groups, A, _, got, theta = seen[-1]
    run.policy.theta = theta
    loss, expected = explicit_gradient(run.policy, run.training, groups, beta, A=A, residual=changed)
    assert got.loss == pytest.approx(loss, abs=1e-4)
    monkeypatch.setattr(
        decoder, "free_bytes", lambda device: 0.0
    )  # layers computed twice, as where memory is short
    again = (groups, A, run.training, False, None, 1, run.arm.residual)
    twice = policy_gradient(run.policy, run.policy.merged(theta), *again)
    for name, g in got.total.items():
        torch.testing.assert_close(twice.total[name], g, atol=1e-6, rtol=1e-4)
    for mine, source in ((got.student, "live"), (got.teacher, "teacher")):
        for name, g in expected[source].items():
            torch.testing.assert_close(mine[name].double(), g, atol=1e-5, rtol=2e-3)


@pytest.mark.parametrize("arm", ["steer", "caft"])
def test_sampling_and_deployment_are_not_steered(arm, tmp_path):
    """The first step's rollouts are vanilla's; what is deployed is theta."""
    _, plain, _ = finish(make_run(), tmp_path / "a")
    _, ours, run = finish(make_run(arm=arm, direction="own"), tmp_path / "b")
    assert [r for r in plain if r["step"] == 1] == [r for r in ours if r["step"] == 1]
    assert run.arm.deployed(run.policy.theta) is run.policy.theta and not run.arm.stored()


def test_nothing_added_is_vanilla(tmp_path):
    rows, rollouts, vanilla = finish(make_run(), tmp_path / "a")
    same, others, run = finish(make_run(arm="steer", direction="own", alpha=0.0), tmp_path / "b")
    assert rows == same and rollouts == others
    assert all(torch.equal(value, run.policy.theta[name]) for name, value in vanilla.policy.theta.items())


def test_scores_route_rows_by_two_cuts(tmp_path, monkeypatch):
    run = make_run(arm="route_scores", direction="own")
    _, _, seen = spied(run, tmp_path / "run", monkeypatch)
    low, high = run.arm.given.concept.cuts
    met = set()
    for groups, _, (*_, kinds, n, _), got, theta in seen:
        assert n == 3
        for group, labels in zip(groups, kinds, strict=True):
            scores = scores_of(run, group, theta)
            expected = [0 if s <= low else 1 if s > high else 2 for s in scores]
            near = [min(abs(s - low), abs(s - high)) < 1e-3 for s in scores]
            assert all(a == b or close for a, b, close in zip(labels, expected, near, strict=True))
            met |= set(labels)
        kept, parked = run.arm.split_gradient(got)
        clean, hack, both = got.by_label
        for name in kept:
            torch.testing.assert_close(kept[name], clean[name] + both[name])
            torch.testing.assert_close(parked[name], hack[name] + both[name])
            torch.testing.assert_close(got.total[name], clean[name] + hack[name] + both[name])
    assert len(met) > 1


def test_the_direction_monitor_flags_what_scores_above_its_threshold(tmp_path, monkeypatch):
    run = make_arm("penalty", "direction")
    _, rollouts, seen = spied(run, tmp_path / "run", monkeypatch)
    threshold = run.arm.given.concept.threshold
    for step, (groups, *_, theta) in enumerate(seen, 1):
        for group in groups:
            told = [r for r in rollouts if (r["step"], r["problem_id"]) == (step, str(group.problem.id))]
            for row, score in zip(told, scores_of(run, group, theta), strict=False):
                assert row["flagged"] == (score > threshold) or abs(score - threshold) < 1e-3
    assert {row["flagged"] for row in rollouts} == {True, False}


def test_a_monitor_has_a_direction_or_needs_none():
    with pytest.raises(UserError, match="direction: null, allowed: a basis with monitor direction"):
        make_setting({"arm": "penalty", "monitor": "direction"})
    with pytest.raises(UserError, match="direction: 'own', allowed: null with monitor truth100"):
        make_setting({"arm": "penalty", "monitor": "truth100", "direction": "own"})
    with pytest.raises(UserError, match="layer: 1, allowed: null with monitor truth100"):
        make_setting({"arm": "penalty", "monitor": "truth100", "layer": 1})
    setting = make_setting({"arm": "penalty", "monitor": "direction", "direction": "own", "layer": 1})
    assert setting.needs.direction == setting.needs.pairs == setting.source == "own" and setting.basis is None
