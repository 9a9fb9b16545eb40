"""What R6 and R7 measure on bases of a tiny model: drift of a basis, and the two losses' bases."""

import json

import pytest
import torch
from test_probe import exact_gradient, make_policy
from tiny import random_theta

from projected_grpo.errors import UserError
from projected_grpo.method.basis import overlap
from projected_grpo.method.extraction import extract_basis
from projected_grpo.method.pairs import Pair, PairSet
from projected_grpo.stages.contrast import compare_losses, drift, overlaps
from projected_grpo.stages.kept import read_adapter
from projected_grpo.training.results import write_adapter

KNOBS = {"top_k": 4, "tau": 0.0, "method": "svd", "solve_orth_m": 0, "control": "none"}
USE = {"k": 3, "drop_bottom_frac": 0.0}


def pair_set(lengths):
    word = "abcdefghij"
    pairs = tuple(
        Pair(prompt=f"{i}?", hack=word[i % 5 :][:h], clean=word[::-1][i % 4 :][:c], tags=())
        for i, (h, c) in enumerate(lengths)
    )
    return PairSet("made", pairs)


def bases(policy, pairs):
    return [extract_basis(policy, pairs, KNOBS | {"loss": loss}, 41).used(**USE) for loss in ("nll", "grpo")]


def test_length_weighting_is_all_that_tells_the_losses_apart():
    policy, pairs = make_policy(), pair_set([(3, 6), (5, 2), (6, 3), (2, 5), (4, 6), (6, 2)])
    nll, grpo = bases(policy, pairs)
    found = compare_losses(policy, pairs, KNOBS, USE, nll, grpo)
    assert found["overlap_reweighted"] == pytest.approx(1, abs=1e-4)
    assert found["overlap"] < 0.98 and found["hash_nll"] != found["hash_grpo"]
    assert found["overlap"] == pytest.approx(overlap(nll.V, grpo.V))


def test_equal_lengths_make_the_losses_equal():
    policy, pairs = make_policy(), pair_set([(4, 4)] * 6)
    nll, grpo = bases(policy, pairs)
    found = compare_losses(policy, pairs, KNOBS, USE, nll, grpo)
    assert found["overlap"] == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("adapter", ["antipasto", "lora"])
def test_drift_is_none_at_the_start_and_some_after_training(adapter, tmp_path):
    policy, pairs = make_policy(adapter), pair_set([(3, 6), (5, 2), (6, 3), (2, 5)])
    asked = (pairs, KNOBS | {"loss": "nll"}, USE, bases(policy, pairs)[0], 41)
    assert drift(policy, *asked) == pytest.approx(1, abs=1e-4)
    file = tmp_path / "adapter.safetensors"
    write_adapter(file, random_theta(policy.adapter, scale=0.5), {})
    policy.theta = read_adapter(file, policy)
    assert drift(policy, *asked) < 0.95
    file.write_bytes(b"x" * 20)
    with pytest.raises(UserError, match="no adapter of this model"):
        read_adapter(file, policy)


def test_bases_are_held_against_the_reference_at_their_own_k_and_with_their_sign():
    """The cosine against autograd's mean gradients laid end to end; the overlap against principal angles."""
    policy = make_policy()
    own, other = pair_set([(3, 6), (5, 2), (6, 3), (2, 5)]), pair_set([(6, 2), (2, 6), (5, 5), (3, 4)])
    flipped = PairSet("flipped", tuple(Pair(p.prompt, p.clean, p.hack, ()) for p in own.pairs))
    sets = {"own": own, "other": other, "flipped": flipped}
    knobs = KNOBS | {"loss": "nll"}
    made = {name: extract_basis(policy, pairs, knobs, 41) for name, pairs in sets.items()}
    for basis in made.values():
        basis.metadata["knobs"] = json.dumps(knobs)
    asked = [(name, k) for name in sets for k in (1, 3)]
    uses = [{"basis": name, "use": USE | {"k": k}} for name, k in asked]
    found = {(one["basis"], one["k"]): one for one in overlaps(policy, "own", made, sets, uses)}
    assert list(found) == asked

    def mean_gradient(pairs, side):
        encode, chat, end = policy.tokenizer.encode, policy.tokenizer.encode_chat, policy.tokenizer.end
        rows = [(chat(pair.prompt), [*encode(getattr(pair, side)), end]) for pair in pairs.pairs]
        grads = [exact_gradient(policy, *row)[1] for row in rows]
        return torch.stack([torch.cat(list(each.values())) for each in grads]).mean(0)

    difference = {
        n: mean_gradient(pairs, "hack") - mean_gradient(pairs, "clean") for n, pairs in sets.items()
    }
    for name, k in asked:
        cosine = torch.nn.functional.cosine_similarity(difference[name], difference["own"], dim=0)
        assert found[name, k]["cosine"] == pytest.approx(float(cosine), abs=1e-4)
        angles = [
            torch.linalg.svdvals(made[name].V[m][:k] @ made["own"].V[m][:k].T).square().mean()
            for m in made["own"].V
        ]
        assert found[name, k]["overlap"] == pytest.approx(float(torch.stack(angles).mean()), abs=1e-5)
    assert found["flipped", 3]["cosine"] == pytest.approx(-1, abs=1e-4)
    assert found["flipped", 3]["overlap"] == pytest.approx(1, abs=1e-4)
