"""The functional Qwen3 against transformers' Qwen3ForCausalLM: log-probs and gradients, on packed batches."""

import pytest
import torch
import torch.nn.functional as F
from transformers import Qwen3Config, Qwen3ForCausalLM

from projected_grpo.errors import UserError
from projected_grpo.model import qwen3
from projected_grpo.model.batch import Batch, Rectangle
from projected_grpo.model.kernels import linear, rms_norm, rotate, token_logprobs
from projected_grpo.model.qwen3 import Config, Qwen3

# mixed lengths: several rows of one prompt, an empty completion, a prompt without rows
PROMPTS = [[5, 9, 3], [1, 2, 3, 4, 5, 6, 7], [8], [30, 31]]
COMPLETIONS = [[4, 4, 9], [7], [], [11, 12, 13, 14, 15, 16], [3, 2], [20, 21, 22]]
UNIT = [1, 0, 2, 1, 2, 0]
EVEN = ([[5, 9, 3], [1, 2, 3]], [[4, 4], [7, 8], [9, 1], [2, 3]], [0, 0, 1, 1])
RAGGED = (PROMPTS, COMPLETIONS, UNIT)


class ExactNorm(torch.nn.Module):
    """transformers' RMSNorm in the input's own precision: the original rounds float64 to float32."""

    def __init__(self, norm):
        super().__init__()
        self.weight, self.eps = norm.weight, norm.variance_epsilon

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps)


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


def ours(reference: Qwen3ForCausalLM, grad: bool = False) -> Qwen3:
    weights = {n: p.detach().clone().requires_grad_(grad) for n, p in reference.named_parameters()}
    return Qwen3(Config.from_dict(reference.config.to_dict()), weights)


def reference_logprobs(model, prompts, completions, unit) -> torch.Tensor:
    rows = []
    for u, completion in zip(unit, completions, strict=True):
        ids = torch.tensor([prompts[u] + completion])
        logp = model(ids).logits[0].log_softmax(-1)
        at = torch.arange(len(prompts[u]) - 1, ids.shape[1] - 1)
        rows.append(logp[at, ids[0, at + 1]])
    return torch.cat(rows)


@pytest.mark.parametrize("kv", [1, 2, 4])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("case", [EVEN, RAGGED], ids=["even", "ragged"])
def test_logprobs_and_all_gradients_equal_transformers(kv, tied, case):
    reference = make_reference(kv=kv, tied=tied)
    model = ours(reference, grad=True)
    expected = reference_logprobs(reference, *case)
    weight = torch.linspace(-1, 2, len(expected), dtype=torch.float64)
    (expected * weight).sum().backward()
    got = model.logprobs(Batch(*case))
    torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-9)
    (got * weight).sum().backward()
    for name, p in reference.named_parameters():
        torch.testing.assert_close(model.weights[name].grad, p.grad, rtol=1e-8, atol=1e-9, msg=name)


@pytest.mark.parametrize("case", [EVEN, RAGGED], ids=["even", "ragged"])
def test_gradients_with_a_frozen_head_equal_transformers(case):
    reference = make_reference(tied=False)
    model = ours(reference, grad=True)
    model.head.requires_grad_(False)
    expected = reference_logprobs(reference, *case)
    weight = torch.linspace(-1, 2, len(expected), dtype=torch.float64)
    (expected * weight).sum().backward()
    got = model.logprobs(Batch(*case))
    torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-9)
    (got * weight).sum().backward()
    for name, p in reference.named_parameters():
        if name != "lm_head.weight":
            torch.testing.assert_close(model.weights[name].grad, p.grad, rtol=1e-8, atol=1e-9, msg=name)


def test_float32_is_close_and_bfloat16_gives_float32_logprobs():
    reference = make_reference(torch.float32)
    expected = reference_logprobs(reference, *RAGGED)
    got = ours(reference).logprobs(Batch(*RAGGED))
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=2e-5)
    half = make_reference(torch.bfloat16)
    got = ours(half).logprobs(Batch(*RAGGED))
    assert got.dtype == torch.float32
    torch.testing.assert_close(got, reference_logprobs(half, *RAGGED).float(), rtol=0.1, atol=0.3)


def test_recomputation_and_chunks_change_nothing(monkeypatch):
    reference = make_reference(tied=False)
    plain, spare = ours(reference, grad=True), ours(reference, grad=True)
    for model in (plain, spare):
        model.head.requires_grad_(False)
    a = plain.logprobs(Batch(*RAGGED))
    monkeypatch.setitem(qwen3.HEAD_ELEMENTS, "cpu", 61 * 4)
    b = spare.logprobs(Batch(*RAGGED), checkpoint=True)
    torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)
    a.square().sum().backward()
    b.square().sum().backward()
    for name in plain.weights.keys() - {"lm_head.weight"}:
        torch.testing.assert_close(spare.weights[name].grad, plain.weights[name].grad, rtol=1e-9, atol=1e-11)


def test_linear_seam_sees_every_linear_once_and_carries_gradients():
    model = ours(make_reference())
    batch = Batch(*RAGGED)
    seen, shifts = [], {}

    def linear(name, x, W):
        seen.append(name)
        assert x.shape == (len(batch.tokens), W.shape[1])
        shifts[name] = torch.zeros(len(x), len(W), dtype=x.dtype, requires_grad=True)
        return F.linear(x, W) + shifts[name]

    out = model.logprobs(batch, linear)
    assert seen == model.linears and len(seen) == 21
    torch.testing.assert_close(out, model.logprobs(batch))
    out.sum().backward()
    assert all(s.grad.abs().sum() > 0 for s in shifts.values())
    # the last token of a row predicts nothing: no gradient reaches the last layer's output there
    end = batch.n_prompt_tokens + len(COMPLETIONS[0]) - 1
    assert shifts[model.linears[-1]].grad[end].abs().max() == 0


def test_residual_seam_and_readout_are_the_hidden_states_of_transformers():
    reference = make_reference()
    model, seen = ours(reference), []

    def residual(i, x):
        seen.append(i)
        return x + 0.5 * (i == 1)

    got = model.residuals(Batch(*RAGGED), 1)
    steered = model.logprobs(Batch(*RAGGED), residual=residual)
    assert seen == [0, 1, 2]
    hidden = []
    reference.model.layers[1].register_forward_hook(lambda _, __, out: hidden.append(out[0]) or out + 0.5)
    torch.testing.assert_close(steered, reference_logprobs(reference, *RAGGED), rtol=1e-9, atol=1e-9)
    rows = zip(hidden, UNIT, strict=True)
    torch.testing.assert_close(got, torch.cat([x.view(-1, 24)[len(PROMPTS[u]) :] for x, u in rows]))


def test_replace_swaps_only_the_named_linears():
    model = ours(make_reference())
    name = model.linears[3]
    W = torch.randn_like(model.weights[name + ".weight"])
    changed = model.replace({name: W})
    assert changed.weights[name + ".weight"] is W and model.weights[name + ".weight"] is not W
    assert changed.embedding is model.embedding
    with pytest.raises(KeyError, match=r"lm\.nothing"):
        model.replace({"lm.nothing": W})


def test_batch_layout():
    batch = Batch(*RAGGED)
    assert batch.tokens.tolist() == [t for part in PROMPTS + COMPLETIONS for t in part]
    assert batch.targets.tolist() == [t for c in COMPLETIONS for t in c]
    assert batch.positions[:3].tolist() == [0, 1, 2]
    assert batch.positions[13:16].tolist() == [7, 8, 9]
    assert batch.tokens[batch.predictors].tolist()[:4] == [7, 4, 4, 3]
    owner = batch.owner([9, 9, 9, 8], [0, 1, 2, 3, 4, 5])
    assert owner.tolist() == [9] * 11 + [8] * 2 + [0] * 3 + [1] + [3] * 6 + [4] * 2 + [5] * 3


def test_batch_of_nothing_but_empty_completions():
    model = ours(make_reference())
    assert model.logprobs(Batch([[1, 2]], [[], []], [0, 0])).shape == (0,)
    assert model.logprobs(Batch([[1, 2]], [], [])).shape == (0,)


@pytest.mark.parametrize("arguments", [([[]], [[1]], [0]), ([[1]], [[1]], [1]), ([[1]], [[1]], [])])
def test_batch_refuses_what_it_cannot_place(arguments):
    with pytest.raises(ValueError):
        Batch(*arguments)


def test_written_out_gradients_are_autograds():
    x = torch.randn(5, 3, 8, dtype=torch.float64, requires_grad=True)
    w = torch.randn(8, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, w: rms_norm(x, w, 1e-2), (x, w))
    torch.testing.assert_close(rms_norm(x, w, 1e-2), F.rms_norm(x, (8,), w, 1e-2))
    angle = torch.randn(5, 1, 4, dtype=torch.float64)
    cos, sin = angle.cos().repeat(1, 1, 2), torch.cat((-angle.sin(), angle.sin()), -1)
    assert torch.autograd.gradcheck(lambda x: rotate(x, cos, sin), (x,))
    head, targets = torch.randn(11, 8, dtype=torch.float64), torch.tensor([0, 3, 10, 3, 7])
    assert torch.autograd.gradcheck(lambda x: token_logprobs(x[:, 0], head, targets, 2), (x,))
    expected = (x[:, 0] @ head.T).log_softmax(-1).gather(1, targets[:, None])[:, 0]
    torch.testing.assert_close(token_logprobs(x[:, 0], head, targets, 2), expected)
    assert torch.equal(linear(x[:, 0], w[None]), F.linear(x[:, 0], w[None]))
    tall = torch.randn(9, 8, dtype=torch.float64)
    many = torch.randn(20, 8, dtype=torch.float64)
    torch.testing.assert_close(linear(many, tall), F.linear(many, tall), rtol=0, atol=1e-14)
    a, b = x.chunk(2, -1)
    turned = torch.view_as_complex(torch.stack((a, b), -1)) * torch.polar(torch.ones_like(angle), angle)
    torch.testing.assert_close(rotate(x, cos, sin), torch.cat((turned.real, turned.imag), -1))


def test_rectangle_round_trip_and_gradient():
    area = Rectangle([2, 0, 3])
    x = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    padded = area.pad(x)
    assert padded.shape == (3, 3, 4) and padded[1].abs().sum() == 0 and padded[0, 2].abs().sum() == 0
    assert torch.equal(area.pack(padded), x)
    assert torch.autograd.gradcheck(lambda x: area.pack(area.pad(x).square()), (x,))


@pytest.mark.parametrize(
    ("change", "word"),
    [({"model_type": "llama"}, "model_type"), ({"attention_bias": True}, "attention_bias"),
     ({"rope_scaling": {"rope_type": "yarn"}}, "rope_scaling"), ({"head_dim": None}, "head_dim")],
)  # fmt: skip
def test_config_refuses_other_architectures(change, word):
    raw = make_reference().config.to_dict()
    raw.pop("rope_parameters" if "rope_scaling" in change else "unused", None)
    with pytest.raises(UserError, match=word):
        Config.from_dict({**raw, **change})
