"""Adapters against float64 algebra and autograd."""

import pytest
import torch
from tiny import random_theta, tiny_adapter, tiny_model, tiny_samples

from projected_grpo.errors import UserError
from projected_grpo.method.adapter import AntiPaSTO, Labels, decompose, load_svd, save_svd
from projected_grpo.method.gradients import Sample, Tape, sample_gradients
from projected_grpo.method.lora import LoRA
from projected_grpo.model.decoder import Batch


def antipasto(model):
    return tiny_adapter(model)


def lora(model):
    return LoRA({name: model.weights[f"{name}.weight"] for name in model.linears}, rank=3, alpha=6)


ADAPTERS = pytest.mark.parametrize("make", [antipasto, lora])


@ADAPTERS
def test_zero_parameters_are_the_base_model_bit_for_bit(make):
    model = tiny_model()
    adapter = make(model)
    for name, W in adapter.merge(adapter.zeros()).items():
        assert torch.equal(W, model.weights[f"{name}.weight"])


def test_merge_is_w_plus_u_diag_d_vh_in_float64():
    model = tiny_model()
    adapter = tiny_adapter(model)
    theta = random_theta(adapter)
    for name, W in adapter.merge(theta).items():
        U, Vh = (t.double() for t in adapter.svd[name])
        expected = model.weights[f"{name}.weight"].double() + U @ torch.diag(theta[name].double()) @ Vh
        torch.testing.assert_close(W.double(), expected, rtol=0, atol=1e-6)


def test_svd_is_orthonormal_and_rebuilds_w():
    W = tiny_model().weights["model.layers.0.mlp.gate_proj.weight"]
    U, S, Vh = decompose(W)
    eye = torch.eye(len(S))
    torch.testing.assert_close(U.T @ U, eye, atol=1e-5, rtol=0)
    torch.testing.assert_close(Vh @ Vh.T, eye, atol=1e-5, rtol=0)
    torch.testing.assert_close(U @ torch.diag(S) @ Vh, W, atol=1e-5, rtol=0)


def test_svd_file_round_trip_and_damage(tmp_path):
    model = tiny_model()
    weights = {name: model.weights[f"{name}.weight"] for name in model.linears}
    path = tmp_path / "svd.safetensors"
    save_svd(weights.__getitem__, {name: tuple(W.shape) for name, W in weights.items()}, path)
    for name, (U, Vh) in load_svd(path, model.linears).items():
        expected = decompose(weights[name])
        assert torch.equal(U, expected[0]) and torch.equal(Vh, expected[2])
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(UserError, match=r"svd\.safetensors"):
        load_svd(path, model.linears)


def loss_of(model, adapter, theta, samples):
    """Mean-NLL loss per sample as a differentiable function of theta: the explicit adapter, in float64."""
    if isinstance(adapter, LoRA):

        def delta(name):
            A0, B0 = (t.double() for t in adapter.start[name])
            A = A0 + theta[name][: A0.numel()].view_as(A0)
            B = B0 + theta[name][A0.numel() :].view_as(B0)
            return adapter.scale * (B @ A - B0 @ A0)
    else:

        def delta(name):
            U, Vh = (t.double() for t in adapter.svd[name])
            return U @ torch.diag(theta[name]) @ Vh

    explicit = model.replace({n: model.weights[f"{n}.weight"] + delta(n) for n in adapter.names})
    return [-explicit.logprobs(Batch([(s.prompt, s.completion)])).mean() for s in samples]


@ADAPTERS
@pytest.mark.parametrize("n", [3, 9])  # below and above the split of dW' by label
def test_per_sample_gradients_equal_one_autograd_call_per_sample(make, n):
    model = tiny_model()
    adapter = make(model)
    theta = random_theta(adapter)
    samples = tiny_samples(n)
    got, losses = sample_gradients(model.replace(adapter.merge(theta)), adapter, samples, batch_tokens=40)

    exact = tiny_model(dtype=torch.float64)
    leaves = {name: value.double().requires_grad_() for name, value in theta.items()}
    for i, loss in enumerate(loss_of(exact, adapter, leaves, samples)):
        expected = torch.autograd.grad(loss, list(leaves.values()), retain_graph=True)
        assert float(losses[i]) == pytest.approx(loss.item(), rel=1e-4)
        for name, g in zip(leaves, expected, strict=True):
            torch.testing.assert_close(got[name][i].double(), g, atol=2e-5, rtol=1e-3)


@ADAPTERS
def test_split_gradients_of_shared_prefixes_equal_the_explicit_adapter(make):
    """Two labels, rows shared within a label: each label's gradient is autograd's on that label's loss alone."""
    model = tiny_model()
    adapter = make(model)
    theta = random_theta(adapter)
    merged = model.replace(adapter.merge(theta))
    prompt = [3, 1, 4, 1, 5]
    rows = [[9, 2, 6], [5, 3], [5, 8, 9, 7], [9, 2, 6], [9, 3], [5, 8, 1], [9, 3]]
    labels = [0, 0, 0, 0, 1, 1, 1]
    batch = Batch([(prompt, row) for row in rows], labels)
    tape = Tape(adapter, 2)
    tape.begin(batch)
    merged.logprobs(batch, linear=tape.linear).sum().backward()

    exact = tiny_model(dtype=torch.float64)
    leaves = {name: value.double().requires_grad_() for name, value in theta.items()}
    for label in (0, 1):
        chosen = [Sample(prompt, row) for row, own in zip(rows, labels, strict=True) if own == label]
        losses = loss_of(exact, adapter, leaves, chosen)
        total = sum(-loss * len(s.completion) for loss, s in zip(losses, chosen, strict=True))
        expected = torch.autograd.grad(total, list(leaves.values()))
        for name, g in zip(leaves, expected, strict=True):
            torch.testing.assert_close(tape.grads[name][label].double(), g, atol=1e-4, rtol=1e-3)


def test_layer_checkpointing_changes_no_gradient():
    model = tiny_model()
    adapter = tiny_adapter(model)
    grads = []
    for checkpoint in (False, True):
        batch = Batch([([1, 2, 3], [4, 5]), ([1, 2, 3], [6, 7, 8])])
        tape = Tape(adapter, 1)
        tape.begin(batch)
        model.logprobs(batch, linear=tape.linear, checkpoint=checkpoint).sum().backward()
        grads.append(tape.grads)
    for name in adapter.names:
        torch.testing.assert_close(grads[0][name], grads[1][name])


@ADAPTERS
def test_gradients_of_half_width_activations_are_summed_in_float32(make):
    """The sum over 2,000 tokens against float64 on the same bfloat16 values: its own rounding would cost 2^-9."""
    model = tiny_model(dtype=torch.bfloat16)
    adapter = make(model)
    adapter.merge(adapter.zeros())
    name = adapter.names[0]
    d_out, d_in = model.weights[f"{name}.weight"].shape
    generator = torch.Generator().manual_seed(1)
    x, g = (torch.randn(2000, d, generator=generator).bfloat16() for d in (d_in, d_out))
    labels = Labels(torch.arange(2000) // 100 % 2, 2)
    got = adapter.gradient(name, x, g, labels)
    assert got.dtype == torch.float32
    for label in range(2):
        dW = g[labels.values == label].double().T @ x[labels.values == label].double()
        if make is antipasto:
            U, Vh = (t.double() for t in adapter.svd[name])
            exact = torch.diag(U.T @ dW @ Vh.T)
        else:
            A, B = (t.double() for t in adapter.start[name])
            exact = adapter.scale * torch.cat([(B.T @ dW).flatten(), (dW @ A.T).flatten()])
        torch.testing.assert_close(
            got[label].double(), exact, rtol=1e-5, atol=1e-5 * exact.abs().max().item()
        )


def test_a_small_delta_survives_a_bfloat16_merge_as_one_rounding_of_the_float32_sum():
    model = tiny_model(dtype=torch.bfloat16)
    adapter = tiny_adapter(model)
    theta = {name: torch.full((size,), 1e-4) for name, size in adapter.sizes.items()}
    changed = 0
    for name, W in adapter.merge(theta).items():
        U, Vh = (t.double() for t in adapter.svd[name])
        base = model.weights[f"{name}.weight"]
        exact = base.double() + 1e-4 * U @ Vh
        spacing = torch.finfo(torch.bfloat16).eps * exact.abs().clamp_min(1e-30)
        assert W.dtype == torch.bfloat16
        assert bool(((W.double() - exact).abs() <= spacing / 2 * 1.001).all())
        changed += int((base != W).sum())
    assert changed > 0


@pytest.mark.parametrize("tokens", [40, 2000])
@pytest.mark.parametrize("n", [2, 6])
def test_a_wide_modules_gradient_is_that_of_float64_in_either_form(tokens, n):
    generator = torch.Generator().manual_seed(tokens)
    U, _, Vh = decompose(torch.randn(260, 300, generator=generator))
    adapter = AntiPaSTO({}, {"wide": (U, Vh)})
    x, g = (torch.randn(tokens, d, generator=generator) for d in (300, 260))
    labels = Labels(torch.arange(tokens) * n // tokens, n)
    got = adapter.gradient("wide", x, g, labels)
    for label in range(n):
        mask = labels.values == label
        dW = g[mask].double().T @ x[mask].double()
        exact = torch.diag(U.double().T @ dW @ Vh.double().T)
        torch.testing.assert_close(
            got[label].double(), exact, rtol=1e-5, atol=1e-5 * exact.abs().max().item()
        )
    # both forms are reached: few tokens are cheaper one by one
    assert adapter._is_split(labels, 260, 260, 300) == (tokens == 2000)
