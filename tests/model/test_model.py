"""The decoder against transformers' Qwen3ForCausalLM: log-probs and gradients, on packed batches."""

from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from families import ExactNorm, ours, reference_logprobs
from transformers import Qwen3Config, Qwen3ForCausalLM

from projected_grpo.model import decoder, tiles
from projected_grpo.model.batch import Batch
from projected_grpo.model.kernels import linear, rms_norm, rotate, token_logprobs

# mixed lengths: several rows of one prompt, an empty completion, a prompt without rows
A, B, C = [5, 9, 3], [1, 2, 3, 4, 5, 6, 7], [8]
EVEN = [(A, [4, 4]), (A, [7, 8]), (B[:3], [9, 1]), (B[:3], [2, 3])]
RAGGED = [(B, [4, 4, 9]), (A, [7]), (C, []), (B, [11, 12, 13, 14, 15, 16]), (C, [3, 2]), (A, [20, 21, 22])]
# rows that part within completions, one that ends where another goes on, two that are equal, prompts that begin alike
FORKED = [
    *RAGGED,
    (B, [4, 4]),
    (B, [4, 4, 9]),
    (B, [11, 12, 13, 1, 1]),
    (B[:4], [5, 6]),
    ([*C, 3], [2]),
    (A, [7, 7]),
]
BATCHES = pytest.mark.parametrize("rows", [EVEN, RAGGED, FORKED], ids=["even", "ragged", "forked"])


def make_reference(dtype=torch.float64, kv=2, tied=True, **other) -> Qwen3ForCausalLM:
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=61, hidden_size=24, intermediate_size=40, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=kv, head_dim=8, tie_word_embeddings=tied, max_position_embeddings=128,
        rope_parameters={"rope_type": "default", "rope_theta": 500.0}, initializer_range=0.3,
        attn_implementation="sdpa", **other,
    )  # fmt: skip
    model = Qwen3ForCausalLM(config).to(dtype)
    for name, p in model.named_parameters():  # norms of ones would hide a missing norm weight
        if "norm" in name:
            p.data += 0.3 * torch.randn_like(p)
    if dtype == torch.float64:
        for name, module in list(model.named_modules()):
            if name.endswith("norm"):
                model.set_submodule(name, ExactNorm(module))
    return model.eval()


@pytest.mark.parametrize("kv", [1, 2, 4])
@pytest.mark.parametrize("tied", [True, False])
@BATCHES
def test_logprobs_and_all_gradients_equal_transformers(kv, tied, rows):
    reference = make_reference(kv=kv, tied=tied)
    model = ours(reference, grad=True)
    expected = reference_logprobs(reference, rows)
    weight = torch.linspace(-1, 2, len(expected), dtype=torch.float64)
    (expected * weight).sum().backward()
    got = model.logprobs(Batch(rows))
    torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-9)
    (got * weight).sum().backward()
    for name, p in reference.named_parameters():
        torch.testing.assert_close(model.weights[name].grad, p.grad, rtol=1e-8, atol=1e-9, msg=name)


@BATCHES
def test_gradients_with_a_frozen_head_equal_transformers(rows):
    reference = make_reference(tied=False)
    model = ours(reference, grad=True)
    model.head.requires_grad_(False)
    expected = reference_logprobs(reference, rows)
    weight = torch.linspace(-1, 2, len(expected), dtype=torch.float64)
    (expected * weight).sum().backward()
    got = model.logprobs(Batch(rows))
    torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-9)
    (got * weight).sum().backward()
    for name, p in reference.named_parameters():
        if name != "lm_head.weight":
            torch.testing.assert_close(model.weights[name].grad, p.grad, rtol=1e-8, atol=1e-9, msg=name)


def test_float32_is_close_and_bfloat16_gives_float32_logprobs():
    reference = make_reference(torch.float32)
    expected = reference_logprobs(reference, FORKED)
    got = ours(reference).logprobs(Batch(FORKED))
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=2e-5)
    half = make_reference(torch.bfloat16)
    got = ours(half).logprobs(Batch(FORKED))
    assert got.dtype == torch.float32
    torch.testing.assert_close(got, reference_logprobs(half, FORKED).float(), rtol=0.1, atol=0.3)


def test_recomputation_and_chunks_change_nothing(monkeypatch):
    reference = make_reference(tied=False)
    plain, spare = ours(reference, grad=True), ours(reference, grad=True)
    for model in (plain, spare):
        model.head.requires_grad_(False)
    a = plain.logprobs(Batch(FORKED))
    monkeypatch.setitem(decoder.HEAD_ELEMENTS, "cpu", 61 * 4)
    b = spare.logprobs(Batch(FORKED), checkpoint=True)
    torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)
    a.square().sum().backward()
    b.square().sum().backward()
    for name in plain.weights.keys() - {"lm_head.weight"}:
        torch.testing.assert_close(spare.weights[name].grad, plain.weights[name].grad, rtol=1e-9, atol=1e-11)


def test_layers_are_recomputed_where_memory_is_short(monkeypatch):
    model, calls = ours(make_reference(), grad=True), []
    batch = Batch(FORKED)
    kept = 0

    def save(x):
        nonlocal kept
        kept += x.nbytes
        return x

    with torch.autograd.graph.saved_tensors_hooks(save, lambda x: x):
        model.logprobs(batch)
    estimate = model.activation_bytes(len(batch.tokens))
    assert 0.5 < estimate / kept < 2  # each tensor counts as often as it is kept
    recompute = decoder.recompute
    monkeypatch.setattr(decoder, "recompute", lambda *a, **k: calls.append(1) or recompute(*a, **k))
    for free, expected in ((2.1 * estimate, 0), (1.9 * estimate, 3)):
        monkeypatch.setattr(decoder, "free_bytes", lambda device, free=free: free)
        model.logprobs(batch)
        assert len(calls) == expected


def test_linear_seam_sees_every_linear_once_and_carries_gradients():
    model = ours(make_reference())
    batch = Batch(FORKED)
    seen, shifts = [], {}

    def linear(name, x, W):
        seen.append(name)
        # the last layer's keys and values aside, its output is needed where something is predicted
        ends = name.startswith("model.layers.2.") and not name.endswith(("k_proj", "v_proj"))
        assert x.shape == (len(batch.predictors if ends else batch.tokens), W.shape[1])
        shifts[name] = torch.zeros(len(x), len(W), dtype=x.dtype, requires_grad=True)
        return F.linear(x, W) + shifts[name]

    out = model.logprobs(batch, linear)
    assert seen == model.linears and len(seen) == 21
    torch.testing.assert_close(out, model.logprobs(batch))
    out.sum().backward()
    assert all(s.grad.abs().sum() > 0 for s in shifts.values())


def test_residual_seam_and_readout_are_the_hidden_states_of_transformers():
    reference = make_reference()
    model, seen = ours(reference), []

    def residual(i, x):
        seen.append(i)
        return x + 0.5 * (i == 1)

    got = model.residuals(Batch(FORKED), 1)
    steered = model.logprobs(Batch(FORKED), residual=residual)
    assert seen == [0, 1, 2]
    hidden = []
    reference.model.layers[1].register_forward_hook(lambda _, __, out: hidden.append(out[0]) or out + 0.5)
    torch.testing.assert_close(steered, reference_logprobs(reference, FORKED), rtol=1e-9, atol=1e-9)
    rows = zip(hidden, FORKED, strict=True)
    torch.testing.assert_close(got, torch.cat([x.view(-1, 24)[len(prompt) :] for x, (prompt, _) in rows]))
    assert model.residuals(Batch(FORKED), 2).shape == got.shape


def test_replace_swaps_only_the_named_linears():
    model = ours(make_reference())
    name = model.linears[3]
    W = torch.randn_like(model.weights[name + ".weight"])
    changed = model.replace({name: W})
    assert changed.weights[name + ".weight"] is W and model.weights[name + ".weight"] is not W
    assert changed.embedding is model.embedding
    with pytest.raises(KeyError, match=r"lm\.nothing"):
        model.replace({"lm.nothing": W})


def test_nodes_are_the_distinct_prefixes_that_precede_a_completion_token():
    labels = [row % 2 for row in range(len(FORKED))]
    for whole in (False, True):
        batch = Batch(FORKED, labels, whole)
        last = 0 if whole else 1
        wanted, predicted = set(), set()
        for (prompt, completion), label in zip(FORKED, labels, strict=True):
            text = tuple(prompt + completion)
            if completion or whole:
                wanted |= {(label, text[:n]) for n in range(1, len(text) + 1 - last)}
            predicted |= {(label, text[:n]) for n in range(len(prompt) + 1, len(text) + 1)}
        prefixes = {}
        for (prompt, completion), label, path in zip(FORKED, labels, batch.paths, strict=True):
            text = tuple(prompt + completion)
            for depth, node in enumerate(path.tolist()):
                assert prefixes.setdefault(node, (label, text[: depth + 1])) == (label, text[: depth + 1])
                assert batch.positions[node] == depth and batch.tokens[node] == text[depth]
                assert batch.labels[node] == label
        assert len(prefixes) == len(batch.tokens) and set(prefixes.values()) == wanted
        before = [prefixes[node] for node in batch.predictors[batch.source].tolist()]
        after = [(label, (*text, t)) for (label, text), t in zip(before, batch.targets.tolist(), strict=True)]
        assert len(after) == len(predicted) and set(after) == predicted
        row_tokens = [
            (label, tuple(prompt + completion[: n + 1]))
            for (prompt, completion), label in zip(FORKED, labels, strict=True)
            for n in range(len(completion))
        ]
        assert [after[n] for n in batch.picks.tolist()] == row_tokens
        assert batch.source.tolist() == sorted(batch.source.tolist())
        assert [batch.source.tolist().count(n) for n in range(len(batch.predictors))] == [
            b - a for a, b in pairwise(batch.offsets)
        ]


def test_batch_of_nothing_but_empty_completions():
    model = ours(make_reference())
    assert model.logprobs(Batch([([1, 2], []), ([1, 2], [])])).shape == (0,)
    assert model.logprobs(Batch([])).shape == (0,)


@pytest.mark.parametrize("arguments", [([([], [1])],), ([([1], [1])], []), ([([1], [1])], [0, 1])])
def test_batch_refuses_what_it_cannot_place(arguments):
    with pytest.raises(ValueError):
        Batch(*arguments)


@pytest.mark.parametrize("pairs", [0, 30, 10**6])
def test_attention_of_any_tiling_is_that_of_each_row_alone(monkeypatch, pairs):
    monkeypatch.setitem(tiles.PAIRS, "cpu", pairs)
    batch = Batch(FORKED, [row % 3 for row in range(len(FORKED))])
    n = len(batch.tokens)
    q = torch.randn(n, 4, 8, dtype=torch.float64)
    k, v = torch.randn(2, n, 2, 8, dtype=torch.float64)
    attend = batch.attention(torch.float64)
    everywhere = attend(0, q, k, v)
    torch.testing.assert_close(attend(2, q[batch.predictors], k, v), everywhere[batch.predictors])
    for path in batch.paths:
        rows = [x[path].transpose(0, 1) for x in (q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1))]
        alone = F.scaled_dot_product_attention(*rows, is_causal=True).transpose(0, 1)
        torch.testing.assert_close(everywhere[path], alone)
    made = tiles.tiles(batch.branches, pairs)
    assert [tile.start for tile in made] == [0, *(tile.stop for tile in made[:-1])] and made[-1].stop == n
    assert (len(made) == 1) == (pairs == 10**6)


def test_written_out_gradients_are_autograds():
    x = torch.randn(5, 3, 8, dtype=torch.float64, requires_grad=True)
    w = torch.randn(8, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, w: rms_norm(x, w, 1e-2), (x, w))
    torch.testing.assert_close(rms_norm(x, w, 1e-2), F.rms_norm(x, (8,), w, 1e-2))
    angle = torch.randn(5, 1, 4, dtype=torch.float64)
    cos, sin = angle.cos().repeat(1, 1, 2), torch.cat((-angle.sin(), angle.sin()), -1)
    assert torch.autograd.gradcheck(lambda x: rotate(x, cos, sin), (x,))
    head = torch.randn(11, 8, dtype=torch.float64, requires_grad=True)
    targets, source = torch.tensor([0, 3, 10, 3, 7, 7]), torch.tensor([0, 1, 1, 2, 3, 4])
    offsets = [0, 1, 3, 4, 5, 6]

    def picked(x, head):
        return token_logprobs(x[:, 0], head, targets, source, offsets, 2)

    assert torch.autograd.gradcheck(picked, (x, head))
    assert torch.autograd.gradcheck(lambda x: picked(x, head.detach()), (x,))
    torch.testing.assert_close(picked(x, head), (x[:, 0] @ head.T).log_softmax(-1)[source, targets])
    assert torch.equal(linear(x[:, 0], w[None]), F.linear(x[:, 0], w[None]))
    tall = torch.randn(9, 8, dtype=torch.float64)
    many = torch.randn(20, 8, dtype=torch.float64)
    torch.testing.assert_close(linear(many, tall), F.linear(many, tall), rtol=0, atol=1e-14)
    a, b = x.chunk(2, -1)
    turned = torch.view_as_complex(torch.stack((a, b), -1)) * torch.polar(torch.ones_like(angle), angle)
    torch.testing.assert_close(rotate(x, cos, sin), torch.cat((turned.real, turned.imag), -1))
