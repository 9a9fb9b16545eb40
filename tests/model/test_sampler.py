"""Sampling: frequencies follow the softmax, log-probs are the plain forward's, batching does not matter."""

import numpy as np
import pytest
import torch
from families import ours
from scipy.stats import chisquare, kstest
from test_model import make_reference

from projected_grpo.model import decode, graphs
from projected_grpo.model.architecture import Config, shapes
from projected_grpo.model.batch import Batch
from projected_grpo.model.decode import draw
from projected_grpo.model.decoder import Decoder
from projected_grpo.model.sampler import sample, uniforms

END = 6
ENDS = {END}
PROMPTS = [[5, 9, 3], [1, 2, 3, 4, 5, 7], [8], [3, 1]]


def make_model(dtype=torch.float64, kv=2, vocab=13, seed=0, tied=True) -> Decoder:
    generator = torch.Generator().manual_seed(seed)
    config = Config(vocab, 16, 24, 2, 4, kv, 8, 1e-6, 100.0, tied)

    def weight(name, shape):
        w = torch.randn(shape, generator=generator, dtype=torch.float64)
        return (1 + 0.2 * w if len(shape) == 1 else 0.4 * w).to(dtype)

    return Decoder(config, {n: weight(n, s) for n, s in shapes(config).items()})


def next_logprobs(model: Decoder, prefix: list[int]) -> torch.Tensor:
    """Log-probabilities of every next token, by the packed forward alone."""
    vocab = range(model.config.vocab_size)
    return model.logprobs(Batch([(prefix, [v]) for v in vocab]))


def one_by_one(model, prompt, u, max_new) -> tuple[list[int], list[float]]:
    """The sampler's definition, no cache, no batch: first token whose cumulative probability exceeds u."""
    tokens, logprobs = [], []
    for t in range(max_new):
        logp = next_logprobs(model, prompt + tokens)
        tokens.append(int((logp.exp().cumsum(0) <= u[t]).sum()))
        logprobs.append(float(logp[tokens[-1]]))
        if tokens[-1] == END:
            break
    return tokens, logprobs


@pytest.mark.parametrize("kv", [1, 2, 4])
@pytest.mark.parametrize("prompts", [PROMPTS, [[5, 9, 3], [1, 2, 3]]], ids=["mixed", "even"])
def test_equals_sampling_row_by_row_without_cache(kv, prompts):
    model = make_model(kv=kv)
    u = uniforms(3, 0, 1, len(prompts), 8, 7)
    rollouts = sample(model, prompts, 8, u, 7, ENDS)
    assert len({len(r.tokens) for r in rollouts}) > 2  # some rows end early
    assert any(len(r.tokens) == 7 and r.tokens[-1] != END for r in rollouts)  # and some are cut
    for row, rollout in enumerate(rollouts):
        tokens, logprobs = one_by_one(model, prompts[row // 8], u[row], 7)
        assert rollout.tokens == tokens
        np.testing.assert_allclose(rollout.logprobs, logprobs, rtol=0, atol=1e-9)
        assert tokens[-1] == END or len(tokens) == 7


def test_recorded_logprobs_are_those_of_the_training_forward():
    model = make_model(torch.float32, vocab=40)
    rollouts = sample(model, PROMPTS, 6, uniforms(0, 0, 0, 4, 6, 20), 20, ENDS)
    got = model.logprobs(Batch([(PROMPTS[row // 6], r.tokens) for row, r in enumerate(rollouts)]))
    recorded = torch.tensor([p for r in rollouts for p in r.logprobs])
    torch.testing.assert_close(got, recorded, rtol=0, atol=2e-5)


def test_samples_and_their_logprobs_are_those_of_a_plain_transformers_forward():
    reference, n = make_reference(), 6
    u = uniforms(2, 0, 0, len(PROMPTS), n, 12)
    rollouts = sample(ours(reference), PROMPTS, n, u, 12, ENDS)
    for row, rollout in enumerate(rollouts):
        prompt = PROMPTS[row // n]
        with torch.no_grad():
            logits = reference(torch.tensor([prompt + rollout.tokens])).logits[0, len(prompt) - 1 : -1]
        logp = logits.log_softmax(-1)
        drawn = (logp.exp().cumsum(-1) <= torch.as_tensor(u[row, : len(logp)])[:, None]).sum(-1)
        assert drawn.tolist() == rollout.tokens
        expected = logp.gather(1, drawn[:, None])[:, 0]
        np.testing.assert_allclose(rollout.logprobs, expected, rtol=0, atol=1e-9)


def test_split_into_calls_and_dropping_of_finished_rows_change_nothing(monkeypatch):
    model = make_model()
    u = uniforms(5, 0, 2, 4, 8, 16)
    together = sample(model, PROMPTS, 8, u, 16, ENDS)
    apart = [r for p in range(4) for r in sample(model, [PROMPTS[p]], 8, u[8 * p : 8 * p + 8], 16, ENDS)]
    assert [r.tokens for r in together] == [r.tokens for r in apart]
    single = [sample(model, [PROMPTS[2]], 1, u[row : row + 1], 16, ENDS)[0].tokens for row in range(16, 24)]
    assert single == [r.tokens for r in together[16:24]]
    for share in (0.0, 1.0):  # never pack the cache anew; whenever it can be
        monkeypatch.setattr(decode, "REPACK", share)
        again = sample(model, PROMPTS, 8, u, 16, ENDS)
        assert [r.tokens for r in again] == [r.tokens for r in together]
        for a, b in zip(again, together, strict=True):
            np.testing.assert_allclose(a.logprobs, b.logprobs, rtol=0, atol=1e-10)


def fits(drawn: list[int], p: np.ndarray) -> bool:
    """Chi-square of token counts against probabilities; tokens expected less than five times share a bin."""
    counts, expected = np.bincount(drawn, minlength=len(p)), p / p.sum() * len(drawn)
    rare = expected < 5
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    return chisquare(counts, expected).pvalue > 1e-3


def test_token_frequencies_follow_the_softmax():
    model = make_model()
    n = 4000
    u = uniforms(11, 0, 0, 2, n, 2)
    rollouts = sample(model, PROMPTS[:2], n, u, 2, ENDS)
    for p in range(2):
        rows = rollouts[p * n : (p + 1) * n]
        first = next_logprobs(model, PROMPTS[p]).exp().numpy()
        assert fits([r.tokens[0] for r in rows], first)
        # the second token, given the commonest first
        start = int(first.argmax())
        second = next_logprobs(model, [*PROMPTS[p], start]).exp().numpy()
        assert start != END
        assert fits([r.tokens[1] for r in rows if r.tokens[0] == start], second)


def test_draw_covers_the_full_vocabulary_and_never_a_token_of_no_probability():
    logits = torch.tensor([[0.0, -200.0, 1.0, -200.0]]).repeat(5, 1)
    u = torch.tensor([0.0, 0.2, 0.27, 0.9999999, 1 - 2**-53], dtype=torch.float64)
    token, logprob = draw(logits, u)
    assert token.tolist() == [0, 0, 2, 2, 2]
    torch.testing.assert_close(logprob, logits.log_softmax(-1).gather(1, token[:, None])[:, 0])


def test_uniforms_are_uniform_and_depend_on_their_coordinates_alone():
    u = uniforms(41, 0, 3, 4, 8, 50)
    assert u.shape == (32, 50) and kstest(u.ravel(), "uniform").pvalue > 1e-3
    assert np.array_equal(uniforms(41, 0, 3, [2], [5], 20)[0], u[2 * 8 + 5, :20])
    others = [(42, 0, 3), (41, 1, 3), (41, 0, 4), (0, 41, 3), (3, 0, 41)]
    assert len({uniforms(*o, 1, 1, 1).item() for o in others} | {u[0, 0]}) == 6
    assert len(np.unique(u)) == u.size


@pytest.mark.parametrize("prompts", [PROMPTS, [[5, 9, 3], [1, 2, 3]]], ids=["mixed", "even"])
def test_the_recorded_step_of_a_gpu_is_the_same_sampler(prompts, monkeypatch):
    monkeypatch.setattr(graphs, "STRETCH", 4)
    monkeypatch.setattr(graphs, "CHECK", 3)
    model, n = make_model(), len(prompts)
    swapped = model.replace({model.linears[8]: 0.4 * torch.randn(8 * 2, 16, dtype=torch.float64)})
    for step, current in enumerate((model, swapped)):  # the second merge uses the decoder of the first
        u = uniforms(5, 0, step, n, 8, 11)
        expected = sample(current, prompts, 8, u, 11, ENDS)
        drawn = graphs.sample_on_graphs(current, prompts, 8, torch.as_tensor(u), 11, ENDS)
        assert [tokens for tokens, _ in drawn] == [r.tokens for r in expected]
        for (_, logprobs), r in zip(drawn, expected, strict=True):
            np.testing.assert_allclose(logprobs, r.logprobs, rtol=0, atol=1e-10)


def test_a_step_is_recorded_once_for_prompts_of_any_width_up_to_the_longest(monkeypatch):
    monkeypatch.setattr(graphs, "WIDTH", 2)
    model, made = make_model(), []
    for prompts in ([[5, 9], [3, 1]], [[1, 2, 3, 4, 5, 7], [8]]):
        u = uniforms(5, 0, 0, 2, 3, 5)
        drawn = graphs.sample_on_graphs(model, prompts, 3, torch.as_tensor(u), 5, ENDS, longest=6)
        assert [tokens for tokens, _ in drawn] == [r.tokens for r in sample(model, prompts, 3, u, 5, ENDS)]
        made.append(graphs._latest[0])
    assert made[0] is made[1] and made[0].width == 6


def test_nothing_to_sample_and_wrong_shapes():
    model = make_model()
    assert sample(model, [], 3, np.zeros((0, 4)), 4, ENDS) == []
    assert [r.tokens for r in sample(model, [[1]], 2, np.zeros((2, 0)), 0, ENDS)] == [[], []]
    with pytest.raises(ValueError, match=r"\(2, 3\)"):
        sample(model, [[1]], 2, np.zeros((2, 4)), 3, ENDS)


def test_bfloat16_logprobs_are_those_of_the_same_weights_without_a_bias():
    """Against a float64 forward on the same bfloat16 weights: as far off as bfloat16's own training forward."""
    model = make_model(torch.bfloat16, vocab=40)
    rollouts = sample(model, PROMPTS, 6, uniforms(0, 0, 0, 4, 6, 20), 20, ENDS)
    recorded = torch.tensor([p for r in rollouts for p in r.logprobs], dtype=torch.float64)
    batch = Batch([(PROMPTS[row // 6], r.tokens) for row, r in enumerate(rollouts)])
    exact = Decoder(model.config, {name: W.double() for name, W in model.weights.items()}).logprobs(batch)
    own, training = recorded - exact, model.logprobs(batch).double() - exact
    assert recorded.isfinite().all() and recorded.max() <= 0
    assert own.abs().mean() < 2 * training.abs().mean() < 0.05
    assert own.mean().abs() < 4 * own.std() / len(own) ** 0.5
