"""On a GPU, against transformers on the CPU in float64; skipped where there is none.

Positions are turned by angles in float32, here and there: sines of a GPU differ in their last bit.
"""

import numpy as np
import pytest
import torch
from families import VARIANTS, ours, reference, reference_logprobs
from on_gpu import DEVICE, exact, moved, needs_gpu
from test_families import FORKED, LONG

from projected_grpo.method.adapter import AntiPaSTO, decompose
from projected_grpo.method.gradients import Sample, sample_gradients
from projected_grpo.method.lora import LoRA
from projected_grpo.model import graphs
from projected_grpo.model.batch import Batch
from projected_grpo.model.sampler import sample, uniforms

pytestmark = needs_gpu
EVERY = pytest.mark.parametrize("variant", VARIANTS)
WIDE = {"hidden_size": 256, "head_dim": 64, "initializer_range": 0.06}  # heads that the fused attention takes
ROWS = FORKED + LONG
PROMPTS, ENDS, N = [[5, 9, 3], [1, 2, 3, 4, 5, 7], [8]], {6, 17}, 6


@EVERY
def test_logprobs_and_every_gradient_equal_transformers(variant):
    theirs = reference(variant)
    model = moved(ours(theirs))
    for W in model.weights.values():
        W.requires_grad_()
    expected = reference_logprobs(theirs, ROWS)
    weight = torch.linspace(-1, 2, len(expected), dtype=torch.float64)
    (expected * weight).sum().backward()
    got = model.logprobs(Batch(ROWS))
    torch.testing.assert_close(got.cpu(), expected, rtol=0, atol=2e-5)
    (got * weight.to(DEVICE)).sum().backward()
    for name, p in theirs.named_parameters():
        torch.testing.assert_close(model.weights[name].grad.cpu(), p.grad, rtol=1e-4, atol=2e-4, msg=name)


@EVERY
@pytest.mark.parametrize(("dtype", "far"), [(torch.float32, 2e-4), (torch.bfloat16, 0.15)])
def test_single_and_half_width_are_near_the_exact_forward(variant, dtype, far):
    """The fused attention kernels, which take neither float64 nor heads of odd sizes, run here."""
    model = moved(ours(reference(variant, torch.float32, **WIDE)), dtype)
    got, wanted = model.logprobs(Batch(ROWS)), exact(model).logprobs(Batch(ROWS))
    assert got.dtype == torch.float32
    assert (got.cpu().double() - wanted).abs().max() < far < wanted.std()


@EVERY
def test_the_recorded_step_draws_what_the_sampler_of_the_cpu_draws(variant, monkeypatch):
    monkeypatch.setattr(graphs, "STRETCH", 4)  # several graphs a call
    monkeypatch.setattr(graphs, "CHECK", 3)
    base = ours(reference(variant))
    changed = base.replace({base.linears[8]: 0.7 * base.weights[f"{base.linears[8]}.weight"]})
    on_gpu = moved(base)
    for step, current in enumerate((base, changed, base)):  # later merges replay the first one's graphs
        u = uniforms(3, 0, step, len(PROMPTS), N, 12)
        expected = sample(current, PROMPTS, N, u, 12, ENDS)
        merged = on_gpu.replace({n: current.weights[f"{n}.weight"].to(DEVICE) for n in current.linears})
        drawn = sample(merged, PROMPTS, N, u, 12, ENDS)
        assert [row.tokens for row in drawn] == [row.tokens for row in expected]
        for one, other in zip(drawn, expected, strict=True):
            np.testing.assert_allclose(one.logprobs, other.logprobs, rtol=0, atol=2e-5)


@pytest.mark.parametrize("variant", ["llama", "qwen3"])
def test_bfloat16_logprobs_of_samples_are_without_a_bias(variant):
    model = moved(ours(reference(variant, torch.float32, **WIDE)), torch.bfloat16)
    rollouts = sample(model, PROMPTS, N, uniforms(0, 0, 0, len(PROMPTS), N, 40), 40, ENDS)
    recorded = torch.tensor([p for row in rollouts for p in row.logprobs], dtype=torch.float64)
    batch = Batch([(PROMPTS[row // N], rollout.tokens) for row, rollout in enumerate(rollouts)])
    wanted = exact(model).logprobs(batch)
    own, training = recorded - wanted, model.logprobs(batch).cpu().double() - wanted
    assert own.abs().mean() < 2 * training.abs().mean() < 0.05
    assert own.mean().abs() < 4 * own.std() / len(own) ** 0.5


@pytest.mark.parametrize("kind", ["antipasto", "lora"])
@pytest.mark.parametrize(("dtype", "far"), [(torch.float32, 2e-3), (torch.bfloat16, 0.05)])
def test_gradients_of_each_sample_are_those_of_float64(kind, dtype, far):
    """Relative to the gradient's norm, sample by sample, at the same rounded weights."""
    model = moved(ours(reference("qwen3", torch.float32, **WIDE)), dtype)
    W = {name: model.weights[f"{name}.weight"] for name in model.linears}
    if kind == "lora":
        adapter = LoRA(W, rank=3, alpha=6)
        exact_adapter = LoRA({n: w.double().cpu() for n, w in W.items()}, rank=3, alpha=6)
        exact_adapter.start = {n: tuple(t.double().cpu() for t in pair) for n, pair in adapter.start.items()}
    else:
        svd = {n: decompose(w) for n, w in W.items()}
        adapter = AntiPaSTO(W, {n: (U, Vh) for n, (U, _, Vh) in svd.items()})
        exact_adapter = AntiPaSTO(
            {n: w.double().cpu() for n, w in W.items()},
            {n: (U.double().cpu(), Vh.double().cpu()) for n, (U, _, Vh) in svd.items()},
        )
    generator = torch.Generator().manual_seed(1)
    theta = {n: 0.05 * torch.randn(size, generator=generator) for n, size in adapter.sizes.items()}
    merged = model.replace(adapter.merge({n: t.to(DEVICE) for n, t in theta.items()}))
    samples = [Sample([5, 9, 3], [4, 4, 9]), Sample([5, 9], [7, 1, 60, 2]), Sample([1, 2, 3], [8] * 9)]
    got, losses = sample_gradients(merged, adapter, samples)
    leaves = {n: merged.weights[f"{n}.weight"].double().cpu().requires_grad_() for n in adapter.names}
    reference_model = exact(merged).replace(leaves)
    for i, s in enumerate(samples):
        loss = -reference_model.logprobs(Batch([(s.prompt, s.completion)])).mean()
        assert float(losses[i]) == pytest.approx(loss.item(), rel=far)
        dW = dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True))
        wanted = {n: chained(exact_adapter, n, theta[n].double(), dW[n]) for n in leaves}
        mine = torch.cat([got[n][i].double().cpu() for n in leaves])
        all_of_it = torch.cat(list(wanted.values()))
        assert (mine - all_of_it).norm() < far * all_of_it.norm()


def chained(adapter, name, theta, dW):
    """The gradient of an adapter's parameters from that of the merged weight, by autograd, in float64."""
    theta = theta.clone().requires_grad_()
    if isinstance(adapter, LoRA):
        A0, B0 = adapter.start[name]
        A, B = A0 + theta[: A0.numel()].view_as(A0), B0 + theta[A0.numel() :].view_as(B0)
        change = adapter.scale * (B @ A)
    else:
        U, Vh = adapter.svd[name]
        change = U @ torch.diag(theta) @ Vh
    return torch.autograd.grad((change * dW).sum(), theta)[0]


@pytest.mark.parametrize("shape", [(896, 4864), (2048, 512), (96, 96)])
def test_a_decomposition_is_orthonormal_and_rebuilds_the_weight(shape):
    W = torch.randn(shape, device=DEVICE)
    U, S, Vh = decompose(W)
    eye = torch.eye(len(S), device=DEVICE)
    torch.testing.assert_close(U.T @ U, eye, atol=2e-3, rtol=0)
    torch.testing.assert_close(Vh @ Vh.T, eye, atol=2e-3, rtol=0)
    assert (U * S @ Vh - W).norm() < 1e-3 * W.norm()
