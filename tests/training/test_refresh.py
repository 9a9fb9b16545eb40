"""Runs whose basis is extracted anew on the current weights, and what routing puts into the quarantine."""

import copy
from dataclasses import replace

import pytest
import torch
import yaml
from test_train import K, TinyTokenizer, finish, make_run, same_adapter
from tiny import tiny_model

from projected_grpo.method.extraction import extract_basis, select_pairs
from projected_grpo.method.gradients import Gradient
from projected_grpo.model.batch import Batch
from projected_grpo.training.checkpoint import Checkpoint
from projected_grpo.training.loop import train
from projected_grpo.training.step import update

PAIRS = [
    {"prompt": f"ask {i}", "hack": word, "clean": word[::-1] + "?"}
    for i, word in enumerate(["trick", "cheat", "patch", "fake", "skip", "stub"])
]
KNOBS = {
    "n_pairs": 6,
    "n_heldout": 1,
    "without_tag": None,
    "with_tag": None,
    "loss": "nll",
    "top_k": 3,
    "tau": 0.0,
}
KNOBS |= {"method": "svd", "solve_orth_m": 0, "control": "none"}


def refreshing(folder, **setting):
    (folder / "pairs.yaml").write_text(yaml.safe_dump(PAIRS))

    def anew(policy, step):
        return extract_basis(policy, select_pairs(folder / "pairs.yaml", KNOBS), KNOBS, 41, step).used(K)

    return make_run(basis="own", extract_anew=anew, **{"arm": "erase", "refresh": 2, **setting})


def explicit_axes(adapter, theta, n, k):
    """The top axes from one autograd call per completion in float64, at W + U diag(theta) Vh."""
    exact, tokenizer = tiny_model(dtype=torch.float64), TinyTokenizer()
    theta = {name: value.double().requires_grad_() for name, value in theta.items()}
    weights = {}
    for name in adapter.names:
        U, Vh = (t.double() for t in adapter.svd[name])
        weights[name] = exact.weights[f"{name}.weight"] + U @ torch.diag(theta[name]) @ Vh
    model = exact.replace(weights)
    sides = {}
    for side in ("hack", "clean"):
        rows = []
        for pair in PAIRS[:n]:
            tokens = [*tokenizer.encode(pair[side]), tokenizer.end]
            batch = Batch([(tokenizer.encode_chat(pair["prompt"]), tokens)])
            nll = -model.logprobs(batch).mean()
            rows.append(torch.autograd.grad(nll, list(theta.values()), retain_graph=True))
        sides[side] = [torch.stack(column) for column in zip(*rows, strict=True)]
    axes = {}
    for name, hack, clean in zip(theta, sides["hack"], sides["clean"], strict=True):
        axes[name] = torch.linalg.svd(hack - clean, full_matrices=False).Vh[:k]
    return axes


def distance(a, b):
    """The largest entry by which two spans' projectors differ, over all modules."""
    return max(float((a[n].double().T @ a[n].double() - b[n].T @ b[n]).abs().max()) for n in b)


@pytest.mark.parametrize("every, steps", [(1, [1, 2, 3, 4]), (2, [2, 4]), (3, [3])])
def test_the_basis_is_extracted_anew_at_every_nth_step_and_its_overlap_is_logged(every, steps, tmp_path):
    rows, _, _ = finish(refreshing(tmp_path, refresh=every), tmp_path / "run")
    overlaps = {row["step"]: row["basis_overlap"] for row in rows if row["basis_overlap"] is not None}
    assert list(overlaps) == steps and all(0 < value < 1 for value in overlaps.values())
    if every == 1:  # the first stands against the stored basis, which has nothing to do with the pairs
        assert min(overlaps[step] for step in steps[1:]) > overlaps[1] + 0.1
    first = {row["step"]: row["basis_overlap_first"] for row in rows if row["step"] in steps}
    assert list(first) == steps and first[steps[0]] == overlaps[steps[0]]
    assert all(value < 1 for value in first.values())


@pytest.mark.parametrize("space", ["gradient", "update"])
def test_a_refreshed_basis_is_that_of_the_pairs_at_the_current_weights_without_the_quarantine(
    space, tmp_path
):
    seen = []
    run = refreshing(tmp_path, arm="route", space=space)
    inner = run.arm.given.extract

    def spy(policy, step):
        basis = inner(policy, step)
        seen.append((dict(policy.theta), dict(run.arm.quarantine), basis))
        return basis

    run.arm.given = replace(run.arm.given, extract=spy)
    checkpoint = Checkpoint(tmp_path / "run", "key")
    train(run, checkpoint)
    assert len(seen) == 2
    used = checkpoint.load()[1]["arm"]["axes"]
    theta, quarantine, basis = seen[-1]
    assert any(bool(value.any()) for value in theta.values())
    assert any(bool(value.any()) for value in quarantine.values())
    expected = explicit_axes(run.policy.adapter, theta, 5, K)
    assert distance(used, expected) < 1e-3
    both = {name: value + quarantine[name] for name, value in theta.items()}
    assert distance(used, explicit_axes(run.policy.adapter, both, 5, K)) > 1e-2
    assert all(torch.equal(used[name], V) for name, V in basis.V.items())


def test_random_axes_are_drawn_anew_at_every_refresh(tmp_path):
    knobs = KNOBS | {"control": "random"}
    (tmp_path / "pairs.yaml").write_text(yaml.safe_dump(PAIRS))
    pairs = select_pairs(tmp_path / "pairs.yaml", knobs)

    def anew(policy, step):
        return extract_basis(policy, pairs, knobs, 41, step).used(K)

    rows, _, _ = finish(make_run(arm="erase", basis="own", refresh=1, extract_anew=anew), tmp_path / "run")
    assert all(row["basis_overlap"] < 0.7 for row in rows)  # of equal spans it is 1


class Killed(Exception):
    pass


HELD = [{"arm": "erase"}, {"arm": "route"}, {"arm": "route", "space": "update"}, {"arm": "absorb"}]


@pytest.mark.parametrize("setting", HELD, ids=lambda s: "-".join(s.values()))
@pytest.mark.parametrize("stop", [2, 3])
def test_a_run_that_resumes_with_a_refreshed_basis_equals_an_undisturbed_one(setting, stop, tmp_path):
    """Stopped right after a refresh, and between two: the stored basis is no longer the one in use."""
    whole = finish(refreshing(tmp_path, **setting), tmp_path / "a")

    def kill(row):
        if row["step"] == stop:
            raise Killed

    with pytest.raises(Killed):
        train(refreshing(tmp_path, **setting), Checkpoint(tmp_path / "b", "key"), kill)
    resumed = finish(refreshing(tmp_path, **setting), tmp_path / "b")
    assert resumed[:2] == whole[:2]
    assert same_adapter(resumed[2], whole[2])


@pytest.mark.parametrize("space", ["gradient", "update"])
def test_the_quarantine_gets_exactly_what_projection_takes_out(space):
    """One step from zero: AdamW's first direction is d = g / (|g| + eps); lr 0.1; V by hand, module by module."""
    run = make_run(basis="own", arm="route", space=space)
    policy = run.policy
    draws = torch.Generator().manual_seed(4)
    parts = [
        {name: torch.randn(size, generator=draws) for name, size in policy.adapter.sizes.items()}
        for _ in range(2)
    ]
    gradient = Gradient(*parts, loss=0.0, log_ratio=torch.zeros(0), pushed=torch.zeros(0), tokens=1)
    twin = copy.deepcopy(run.optimizer).direction(gradient.total)
    update(policy, run.arm, run.optimizer, gradient, 0.1)

    def first(g):
        return g / (g.abs() + 1e-8)

    moved = 0
    for name in policy.theta:
        g = (parts[0][name] + parts[1][name]).double()
        vector = g if space == "gradient" else first(g)
        V = run.arm.axes[name].double()
        removed = sum(max(0.0, float(v @ vector)) * v for v in V)
        kept = vector - removed
        moved += bool(removed.any())
        if (
            space == "gradient"
        ):  # the direction of a first step is little more than signs; the moment is g itself
            moment = run.arm.optimizer.m[name].double() / (1 - run.arm.optimizer.betas[0])
            torch.testing.assert_close(moment, removed, atol=1e-5, rtol=1e-5)
            removed, kept = first(removed), first(kept)
        torch.testing.assert_close(run.arm.quarantine[name].double(), -0.1 * removed, atol=1e-5, rtol=1e-4)
        deployed = run.arm.deployed(policy.theta)[name].double()
        torch.testing.assert_close(deployed, -0.1 * kept, atol=1e-5, rtol=1e-4)
        if space == "update":  # what is trained is both parts, as vanilla is: nothing was added up again
            assert torch.equal(policy.theta[name], 0 - 0.1 * twin[name])
    assert 0 < moved < len(policy.theta)  # where nothing points hack-ward, nothing is moved
