"""Detectors: pairs and AUROC against loops, scores by their definitions, an oracle that cannot peek."""

import itertools

import pandas as pd
import pytest
import torch
from test_contrast import pair_set
from test_probe import make_basis, make_policy
from tiny import random_theta

from projected_grpo.errors import UserError
from projected_grpo.measures.detector import ranking_numbers
from projected_grpo.method.basis import sample_cosine
from projected_grpo.method.concept import batches_of, make_concept, row_means
from projected_grpo.method.gradients import Sample, sample_gradients
from projected_grpo.model.batch import Batch
from projected_grpo.stages import detector, kept
from projected_grpo.stages.detector import CEILING, ORACLE, RANDOM, Ceiling
from projected_grpo.stages.ranking import matched_auroc, matched_pairs, recall, unmatched_auroc, windows
from projected_grpo.training.results import write_deltas

PAIRS = pair_set([(3, 6), (5, 2), (6, 3), (2, 5)])
MAX_NEW = 9


def test_the_last_window_is_a_whole_one():
    assert windows(20) == [(1, 5), (16, 20)] and windows(12) == [(1, 2), (8, 12)]
    assert windows(3) == [(1, 3)]


@pytest.fixture
def drawn():
    g = torch.Generator().manual_seed(4)
    n = 60
    return {
        "hacked": torch.rand(n, generator=g) < 0.4,
        "group": torch.randint(0, 5, (n,), generator=g),
        "tokens": torch.randint(20, 40, (n,), generator=g),
    }, torch.randint(-3, 4, (n, 3), generator=g).double()


def loop_pairs(hacked, group, tokens):
    for i, j in itertools.product(range(len(hacked)), repeat=2):
        a, b = int(tokens[i]), int(tokens[j])
        if hacked[i] and not hacked[j] and group[i] == group[j] and abs(a - b) <= 0.1 * max(a, b):
            yield i, j


def loop_auroc(margins, pairs):
    """The share of pairs whose hack has the larger margin, a tie being half of one."""
    right = ((margins[i] > margins[j]) + 0.5 * (margins[i] == margins[j]) for i, j in pairs)
    return float(sum(right)) / len(pairs)


def test_pairs_and_auroc_are_those_of_a_loop(drawn):
    rows, margins = drawn
    hack, other = matched_pairs(**rows)
    expected = list(loop_pairs(**rows))
    assert sorted(zip(hack.tolist(), other.tolist(), strict=True)) == expected and len(expected) > 20
    found = matched_auroc(margins, hack, other)
    for d in range(3):
        assert float(found[d]) == pytest.approx(loop_auroc(margins[:, d], expected))


def test_unmatched_auroc_is_that_of_every_pair(drawn):
    rows, margins = drawn
    hacked = rows["hacked"]
    pairs = list(itertools.product(hacked.nonzero().flatten(), (~hacked).nonzero().flatten()))
    for d, found in enumerate(unmatched_auroc(margins, hacked)):
        assert float(found) == pytest.approx(loop_auroc(margins[:, d], pairs))
    assert unmatched_auroc(margins, torch.zeros_like(hacked)).isnan().all()
    margins[3, 1] = torch.nan
    assert unmatched_auroc(margins, hacked).isnan().tolist() == [False, True, False]


def test_the_ceiling_scores_each_half_of_the_problems_by_the_other_one():
    g = torch.Generator().manual_seed(9)
    x, hacked = torch.randn(40, 6, generator=g), torch.rand(40, generator=g) < 0.5
    half = torch.arange(40) % 2
    found = Ceiling.fit(x, hacked, half).margins(x, half)[:, 0]
    for i in range(40):
        rest = [j for j in range(40) if half[j] != half[i]]
        hacks, others = (x[[j for j in rest if hacked[j] == kind]].double().mean(0) for kind in (True, False))
        along = (hacks - others) / (hacks - others).norm()
        assert float(found[i]) == pytest.approx(float(x[i].double() @ along - (hacks + others) @ along / 2))
    moved = x.clone()
    moved[half == 0] += 5.0  # what a half looks like says nothing of its own scores' direction
    again = Ceiling.fit(moved, hacked, half)
    torch.testing.assert_close(again.along[1], Ceiling.fit(x, hacked, half).along[1])
    nothing = Ceiling.fit(x, torch.zeros_like(hacked), half)
    assert nothing.margins(x, half).isnan().all()


def test_auroc_and_recall_by_hand():
    margins = torch.tensor([[1.0, 1.0], [2.0, -1.0], [0.5, 1.0], [-1.0, 1.0]])
    hack, other = torch.tensor([0, 1]), torch.tensor([2, 3])
    hacked = torch.tensor([True, True, False, False])
    assert matched_auroc(margins, hack, other).tolist() == [1.0, 0.25]
    assert recall(margins, hacked).tolist() == [1.0, 0.5]
    none = torch.zeros(0, dtype=torch.long)
    assert (
        matched_auroc(margins, none, none).isnan().all() and recall(margins, ~hacked & hacked).isnan().all()
    )
    margins[0, 0] = torch.nan  # a detector that has no say on a row has none at all
    assert matched_auroc(margins, hack, other).isnan().tolist() == [True, False]
    assert recall(margins, hacked).isnan().tolist() == [True, False]


def made_rollouts(steps=6):
    """Two problems, six rollouts of each a step, every other one a hack."""
    words = ["abcd", "bcda", "cdab", "dabc", "acbd", "bdac"]
    rows = [
        {"step": step, "problem_id": problem, "hacked": i % 2 == 0, "tokens": 5, "completion": word[::turn]}
        for step in range(steps, 0, -1)  # not in order
        for problem, turn in (("p", 1), ("q", -1))
        for i, word in enumerate(words)
    ]
    return pd.DataFrame(rows)


def measured(policy, thetas, pairs=PAIRS):
    """Return the frame of a measurement, the directions, and what else it is of."""
    concept = detector.concepts(policy, {"made": pairs, "flipped": pair_set([(6, 3), (2, 5)])}, 4, 41)
    basis, prompts = make_basis(policy.adapter), {"p": [3, 1], "q": [5, 2, 2]}
    aligned = detector.alignment(policy, basis)
    rows = detector.measure(
        policy, made_rollouts(), prompts, MAX_NEW, 6, lambda step: thetas[step - 1], concept, aligned
    )
    return pd.DataFrame(list(rows)), concept, prompts, basis


def test_scores_are_those_of_their_definitions_at_the_weights_of_the_step():
    policy = make_policy()
    thetas = [policy.adapter.zeros(), *(random_theta(policy.adapter, 0.5, seed) for seed in range(1, 6))]
    frame, concept, prompts, basis = measured(policy, thetas)
    rollouts = made_rollouts().query("step >= 2")
    names = ["made", "flipped", *[RANDOM] * 4, ORACLE, CEILING]
    assert frame.query("score == 'concept' and first == 2")["direction"].tolist() == names
    assert frame.query("score == 'alignment'")["direction"].tolist() == ["made"] * 2

    def concept_score(model, rows):
        return row_means(model, Batch(rows), 0)[0].double() @ concept.along[0]

    def alignment(model, rows):
        grads, _ = sample_gradients(model, policy.adapter, [Sample(*row) for row in rows])
        return sample_cosine(grads, basis)[0]

    for score, scored in ((detector.CONCEPT, concept_score), (detector.ALIGNMENT, alignment)):
        right, above = [], []
        for (step, problem), group in rollouts.groupby(["step", "problem_id"]):
            texts = ([*policy.tokenizer.encode(text), policy.tokenizer.end] for text in group["completion"])
            found = scored(policy.merged(thetas[step - 1]), [(prompts[problem], text) for text in texts])
            right += [float(found[i] > found[j]) for i in (0, 2, 4) for j in (1, 3, 5)]
            above += [float(found[i] > concept.thresholds[0]) for i in (0, 2, 4)]
        row = frame.query(f"score == {score!r} and first == 2 and direction == 'made'").iloc[0]
        assert row["auroc"] == pytest.approx(sum(right) / len(right)) and row["pairs"] == len(right) == 90
        if score == detector.CONCEPT:
            assert row["recall"] == pytest.approx(sum(above) / len(above))


def test_a_run_without_hacks_has_no_pairs_and_no_auroc():
    policy = make_policy()
    concept = detector.concepts(policy, {"made": PAIRS}, 2, 41)
    aligned = detector.alignment(policy, make_basis(policy.adapter))
    rollouts, prompts = made_rollouts(3).assign(hacked=False), {"p": [3, 1], "q": [5, 2, 2]}
    zeros = policy.adapter.zeros()
    rows = detector.measure(policy, rollouts, prompts, MAX_NEW, 3, lambda step: zeros, concept, aligned)
    frame = pd.DataFrame(list(rows))
    assert len(frame) == 5 + 1 and frame["pairs"].eq(0).all()
    assert frame[["auroc", "recall"]].isna().all(axis=None)


def test_thresholds_and_turns_are_those_of_the_pairs():
    policy = make_policy()
    _, fixed, _, basis = measured(policy, [policy.adapter.zeros()] * 6)
    pool = [Batch([([4, 2], [1, 2, 3]), ([4, 2], [5, 3, 3]), ([4, 2], [7, 9])])]
    concept = make_concept(policy, PAIRS, pool, None, "none", 41)
    assert torch.allclose(fixed.along[0], concept.direction.double(), atol=1e-6)
    assert float(fixed.thresholds[0]) == pytest.approx(concept.threshold * concept.sd, rel=1e-5)
    sides = []
    for side in ("hack", "clean"):
        means = [row_means(policy.base, one, 0)[0] for one in batches_of(policy, PAIRS, side)]
        sides.append(fixed.margins(torch.cat(means)).mean(0))
    assert torch.allclose(sides[0], -sides[1], atol=1e-6)  # the threshold is the middle
    assert (sides[0][2:] > 0).all()  # random ones, too, have the hacks above
    assert fixed.names == ("made", "flipped", *[RANDOM] * 4)
    parts = detector.alignment(policy, basis).split(list(policy.adapter.sizes.values()))
    assert [float(part.norm()) for part in parts] == pytest.approx([1.0] * len(parts))  # per module


def test_the_oracle_has_no_say_in_its_own_problem():
    g = torch.Generator().manual_seed(1)
    features = torch.randn(12, 5, generator=g)
    fold = torch.arange(12) // 4
    hack, other = torch.tensor([0, 1, 4, 5, 8, 9]), torch.tensor([2, 3, 6, 7, 10, 11])
    before = detector.oracle_margins(features, hack, other, fold)
    changed = features.clone()
    changed[0] = 100.0
    after = detector.oracle_margins(changed, hack, other, fold)
    assert torch.equal(before[1:4], after[1:4]) and not torch.equal(before[4:], after[4:])
    # By the loop: along the others' mean difference, from the middle of their sides.
    a, b = features[[4, 5, 8, 9]].double().mean(0), features[[6, 7, 10, 11]].double().mean(0)
    u = (a - b) / (a - b).norm()
    assert float(before[2, 0]) == pytest.approx(float(features[2].double() @ u - (a + b) @ u / 2))
    alone = detector.oracle_margins(features[:4], torch.tensor([0]), torch.tensor([1]), fold[:4])
    assert alone.isnan().all()


def test_weights_are_those_before_the_step(tmp_path):
    policy = make_policy()
    thetas = [random_theta(policy.adapter, 0.5, seed) for seed in range(3)]
    path = tmp_path / "deltas.safetensors"
    write_deltas(path, thetas)
    assert not any(value.any() for value in kept.weights(path, policy, 1).values())
    found = kept.weights(path, policy, 3)
    assert all(torch.equal(found[name], value) for name, value in thetas[1].items())
    for step in (5, 2):
        if step == 2:
            path.write_bytes(b"x" * 20)
        with pytest.raises(UserError, match="has no delta_S of this model"):
            kept.weights(path, policy, step)


def test_the_end_token_is_that_of_the_run():
    policy = make_policy()
    frame = pd.DataFrame({"problem_id": ["p", "p"], "tokens": [4, 9], "completion": ["abc", "abc"]})
    ended, cut = detector.tokenised(policy, frame, {"p": [1]}, 9)
    assert ended == ([1], [*cut[1], policy.tokenizer.end])


def test_a_run_has_no_number_of_a_first_or_last_window_with_few_pairs(tmp_path):
    directions = {"own_mode": 0.0, "random": -0.1, "oracle": 0.05}
    for few in (("first",), ("last",), ("first", "last"), ()):
        pairs = {1: 19 if "first" in few else 20, 6: 30, 11: 19 if "last" in few else 20}
        rows = [
            {"score": "concept", "direction": name, "first": first, "last": first + 4, "pairs": n}
            | {"auroc": first / 20 + more, "auroc_unmatched": 0.5, "recall": 0.5}
            for first, n in pairs.items()
            for name, more in directions.items()
        ]
        pd.DataFrame(rows).to_parquet(tmp_path / "ranking.parquet")
        found = ranking_numbers(tmp_path / "ranking.parquet", "own_mode")
        wanted = {"first": 1 / 20, "last": 11 / 20}
        assert {at: found.get(f"auroc_{at}") for at in wanted} == {
            at: None if at in few else pytest.approx(value) for at, value in wanted.items()
        }
        assert ("auroc_over_random" in found) == ("recall_last" in found) == ("last" not in few)
