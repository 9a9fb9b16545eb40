"""Every family against transformers' class of it, on tiny random weights."""

import numpy as np
import pytest
import torch
from families import VARIANTS, ours, reference, reference_logprobs
from test_model import FORKED
from transformers import AutoModelForCausalLM

from projected_grpo.errors import UserError
from projected_grpo.method.adapter import AntiPaSTO, decompose
from projected_grpo.method.gradients import Sample, sample_gradients
from projected_grpo.method.lora import LoRA
from projected_grpo.model import graphs
from projected_grpo.model.architecture import FAMILIES, Config, check_family, shapes
from projected_grpo.model.batch import Batch
from projected_grpo.model.decoder import Decoder
from projected_grpo.model.load import load_weights, save_weights
from projected_grpo.model.sampler import sample, uniforms

EVERY = pytest.mark.parametrize("variant", VARIANTS)
# far enough that scaled positions differ, also beyond the length that llama3 scales from
LONG = [(list(range(1, 60)), [int(t) for t in torch.arange(70) * 7 % 61])]


def test_every_family_is_here():
    assert {kind for kind, _ in VARIANTS.values()} == set(FAMILIES)


@EVERY
def test_logprobs_and_every_gradient_equal_transformers(variant):
    theirs = reference(variant)
    model = ours(theirs, grad=True)
    assert {name: tuple(W.shape) for name, W in model.weights.items()} == shapes(model.config)
    rows = FORKED + LONG
    expected = reference_logprobs(theirs, rows)
    weight = torch.linspace(-1, 2, len(expected), dtype=torch.float64)
    (expected * weight).sum().backward()
    got = model.logprobs(Batch(rows))
    torch.testing.assert_close(got, expected, rtol=1e-8, atol=1e-8)
    (got * weight).sum().backward()
    for name, p in theirs.named_parameters():
        torch.testing.assert_close(model.weights[name].grad, p.grad, rtol=1e-7, atol=1e-8, msg=name)


@pytest.mark.parametrize("variant", ["llama-3", "llama-linear"])
def test_scaled_positions_are_not_plain_ones(variant):
    theirs = reference(variant)
    plain = reference("llama", tie_word_embeddings=theirs.config.tie_word_embeddings)
    plain.load_state_dict(theirs.state_dict())
    assert (reference_logprobs(plain, LONG) - ours(theirs).logprobs(Batch(LONG))).abs().max() > 0.01


@EVERY
def test_samples_are_those_of_the_forward_with_a_cache_and_as_a_recorded_step(variant, monkeypatch):
    monkeypatch.setattr(graphs, "STRETCH", 4)
    theirs = reference(variant)
    model, prompts, n = ours(theirs), [[5, 9, 3], [1, 2, 3, 4, 5, 7], [8]], 6
    changed = model.replace({model.linears[8]: 0.7 * model.weights[f"{model.linears[8]}.weight"]})
    for step, current in enumerate((model, changed)):
        u = uniforms(3, 0, step, len(prompts), n, 12)
        rollouts = sample(current, prompts, n, u, 12, {6, 17})
        rows = [(prompts[row // n], rollout.tokens) for row, rollout in enumerate(rollouts)]
        weights = {**dict(theirs.named_parameters()), **current.weights}
        expected = reference_logprobs(theirs, rows, weights if current is changed else None).detach()
        recorded = np.concatenate([rollout.logprobs for rollout in rollouts])
        np.testing.assert_allclose(recorded, expected, rtol=0, atol=1e-8)
        drawn = graphs.sample_on_graphs(current, prompts, n, torch.as_tensor(u), 12, {6, 17})
        assert [tokens for tokens, _ in drawn] == [rollout.tokens for rollout in rollouts]
        np.testing.assert_allclose(np.concatenate([p for _, p in drawn]), recorded, rtol=0, atol=1e-8)


@EVERY
@pytest.mark.parametrize("kind", ["antipasto", "lora"])
def test_adapted_logprobs_and_gradients_equal_those_of_transformers(variant, kind):
    theirs = reference(variant)
    model = ours(theirs)
    W = {name: model.weights[f"{name}.weight"].float() for name in model.linears}
    if kind == "lora":
        adapter = LoRA(W, rank=3, alpha=6)
    else:
        adapter = AntiPaSTO(W, {n: (svd[0], svd[2]) for n, svd in ((n, decompose(w)) for n, w in W.items())})
    generator = torch.Generator().manual_seed(1)
    theta = {n: 0.1 * torch.randn(size, generator=generator) for n, size in adapter.sizes.items()}
    leaves = {n: t.double().requires_grad_() for n, t in theta.items()}
    merged = {
        f"{n}.weight": theirs.get_parameter(f"{n}.weight").detach() + delta(adapter, n, leaves[n]) for n in W
    }
    samples = [Sample([5, 9, 3], [4, 4, 9]), Sample([5, 9], [7, 1, 60, 2])]
    single = Decoder(model.config, {n: w.float() for n, w in model.weights.items()})
    single = single.replace(adapter.merge(theta))
    got, losses = sample_gradients(single, adapter, samples)
    for i, s in enumerate(samples):
        loss = -reference_logprobs(theirs, [(s.prompt, s.completion)], merged).mean()
        assert float(losses[i]) == pytest.approx(loss.item(), rel=1e-4)
        expected = torch.autograd.grad(loss, list(leaves.values()), retain_graph=True)
        for name, g in zip(leaves, expected, strict=True):
            torch.testing.assert_close(got[name][i].double(), g, atol=5e-5, rtol=2e-3)


def delta(adapter, name, theta):
    """W' - W as a differentiable function of an adapter's parameters, in float64."""
    if isinstance(adapter, LoRA):
        A0, B0 = (t.double() for t in adapter.start[name])
        A, B = A0 + theta[: A0.numel()].view_as(A0), B0 + theta[A0.numel() :].view_as(B0)
        return adapter.scale * (B @ A - B0 @ A0)
    U, Vh = (t.double() for t in adapter.svd[name])
    return U @ torch.diag(theta) @ Vh


@EVERY
def test_a_written_checkpoint_is_the_same_to_transformers_and_to_us(variant, tmp_path):
    theirs = reference(variant, torch.float32)
    model = ours(theirs)
    save_weights(model, tmp_path)
    again, report = AutoModelForCausalLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(report.values())
    torch.testing.assert_close(
        reference_logprobs(again.eval(), LONG), reference_logprobs(theirs, LONG), rtol=0, atol=1e-5
    )
    back = load_weights(tmp_path)
    assert back.config == model.config
    assert all(torch.equal(W, model.weights[name]) for name, W in back.weights.items())


def test_a_window_bounds_the_rows_and_within_it_nothing_differs():
    theirs = reference("mistral", sliding_window=16)
    model = ours(theirs)
    fits, beyond = [(list(range(1, 10)), [4] * 7)], [(list(range(1, 10)), [4] * 9)]
    torch.testing.assert_close(
        model.logprobs(Batch(fits)), reference_logprobs(theirs, fits), rtol=0, atol=1e-8
    )
    with pytest.raises(UserError, match="sliding_window: 18 tokens, allowed: 16"):
        model.logprobs(Batch(beyond))
    with pytest.raises(UserError, match="sliding_window"):
        sample(model, [[1, 2]], 1, uniforms(0, 0, 0, 1, 1, 20), 20, {0})


@pytest.mark.parametrize(
    ("variant", "change", "word"),
    [("llama", {"model_type": "gemma3"}, "model_type: 'gemma3' is not run; allowed: llama, mistral"),
     ("llama", {"model_type": None}, "model_type"),
     ("llama", {"hidden_act": "gelu"}, "hidden_act: 'gelu'"),
     ("llama", {"rope_parameters": None, "rope_scaling": {"type": "yarn", "factor": 4}}, "rope_type: 'yarn'"),
     ("llama-3", {"rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5}}, "no factor, low_freq_factor"),
     ("qwen2", {"use_sliding_window": True}, "use_sliding_window: True"),
     ("qwen3", {"layer_types": ["full_attention", "sliding_attention"]}, "layer_types"),
     ("llama", {"rope_parameters": {"rope_theta": 5e5, "partial_rotary_factor": 0.5}}, "partial_rotary_factor: 0.5"),
     ("qwen3", {"num_hidden_layers": None}, "no num_hidden_layers")],
)  # fmt: skip
def test_what_is_not_run_is_refused_in_one_line(variant, change, word):
    raw = {**reference(variant).config.to_dict(), **change}
    with pytest.raises(UserError, match=word) as error:
        Config.from_dict(raw, "folder/config.json")
    assert "\n" not in str(error.value) and str(error.value).startswith("folder/config.json: ")


def test_a_config_of_an_older_transformers_says_the_same():
    new = reference("llama-3").config.to_dict()
    old = {key: value for key, value in new.items() if key not in ("rope_parameters", "head_dim")}
    rope = dict(new["rope_parameters"])
    old |= {"rope_theta": rope.pop("rope_theta"), "rope_scaling": rope}
    check_family(old, "config.json")
    assert Config.from_dict(old) == Config.from_dict(new)
