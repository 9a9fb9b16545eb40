"""The LoRA arm: what it starts from, what PEFT makes of it, and that projection means the same in its space."""

import torch
from peft import PeftModel
from safetensors.torch import load_file
from tiny import random_theta, tiny_model, tiny_samples
from transformers import Qwen3ForCausalLM

from projected_grpo.method.basis import Knobs, extract
from projected_grpo.method.gradients import Sample, sample_gradients
from projected_grpo.method.lora import LoRA
from projected_grpo.method.peft_export import save_peft
from projected_grpo.method.projection import Intervention, project
from projected_grpo.model.decoder import Batch
from projected_grpo.model.load import load_weights, save_weights


def make(model, rank=4, **how):
    return LoRA({name: model.weights[f"{name}.weight"] for name in model.linears}, rank=rank, **how)


def test_both_factors_have_gradients_at_the_start_and_of_one_size():
    model = tiny_model()
    adapter = make(model)
    merged = model.replace(adapter.merge(adapter.zeros()))
    grads, _ = sample_gradients(merged, adapter, tiny_samples(6))
    ratios = []
    for name, g in grads.items():
        A0, _ = adapter.start[name]
        a, b = g[:, : A0.numel()].norm(dim=1), g[:, A0.numel() :].norm(dim=1)
        assert (a > 0).all() and (b > 0).all()
        ratios.append(float((a / b).mean()))
    assert 0.5 < sum(ratios) / len(ratios) < 2


def test_at_b_zero_the_gradient_of_a_would_vanish():
    """The reason for the random B: theta that takes B to zero has no gradient on A."""
    model = tiny_model()
    adapter = make(model)
    theta = {
        name: torch.cat([torch.zeros(A.numel()), -B.flatten()]) for name, (A, B) in adapter.start.items()
    }
    grads, _ = sample_gradients(model.replace(adapter.merge(theta)), adapter, tiny_samples(2))
    for name, g in grads.items():
        size = adapter.start[name][0].numel()
        assert g[:, :size].abs().max() == 0 < g[:, size:].abs().max()


def test_a_start_is_the_same_every_time():
    model = tiny_model()
    a, b = make(model), make(tiny_model(seed=5))
    assert all(torch.equal(x, y) for n in a.names for x, y in zip(a.start[n], b.start[n], strict=True))
    assert any(not torch.equal(a.start[n][0], make(model, seed=1).start[n][0]) for n in a.names)


def test_peft_merges_the_exported_adapter_to_the_same_weights(tmp_path):
    model = tiny_model()
    save_weights(model, tmp_path / "base")
    model = load_weights(tmp_path / "base")
    adapter = make(model, alpha=10.0)
    theta = random_theta(adapter, scale=0.1)
    save_peft(adapter, theta, str(tmp_path / "base"), tmp_path / "lora")
    base = Qwen3ForCausalLM.from_pretrained(tmp_path / "base", dtype=torch.float32)
    peft = PeftModel.from_pretrained(base, tmp_path / "lora").merge_and_unload()
    ours = adapter.merge(theta)
    theirs = dict(peft.named_parameters())
    for name, W in ours.items():
        assert (W - model.weights[f"{name}.weight"]).abs().max() > 1e-3
        torch.testing.assert_close(theirs[f"{name}.weight"], W, atol=1e-5, rtol=0)


def test_the_export_of_zero_changes_nothing(tmp_path):
    model = tiny_model()
    adapter = make(model)
    save_peft(adapter, adapter.zeros(), "base", tmp_path)
    tensors = load_file(tmp_path / "adapter_model.safetensors")
    for name in adapter.names:
        A, B = (tensors[f"base_model.model.{name}.lora_{side}.weight"] for side in "AB")
        assert A.shape[0] == B.shape[1] == 8
        torch.testing.assert_close(B @ A, torch.zeros(B.shape[0], A.shape[1]), atol=1e-6, rtol=0)


def log_odds(model, samples):
    """logp(hack) - logp(clean), mean over tokens each, in float64."""
    exact = tiny_model(dtype=torch.float64).replace({n: W.double() for n, W in model.items()})
    hack, clean = (exact.logprobs(Batch([(s.prompt, s.completion)])).mean() for s in samples)
    return float(hack - clean)


def test_the_sign_and_the_projection_hold_in_lora_space(eta=1e-4):
    """A step along -D raises the log-odds of the hack; with the pair's own axis projected out it does not."""
    model = tiny_model()
    adapter = make(model)
    samples = [Sample([3, 1, 4], [9, 2, 6, 5]), Sample([3, 1, 4], [5, 8, 9])]
    start = adapter.merge(adapter.zeros())
    grads, _ = sample_gradients(model.replace(start), adapter, samples)
    hack, clean = ({n: g[i : i + 1] for n, g in grads.items()} for i in (0, 1))
    basis = extract(hack, clean, Knobs(top_k=1))
    D = {n: hack[n][0] - clean[n][0] for n in hack}

    def change(step):
        return log_odds(adapter.merge({n: -eta * g for n, g in step.items()}), samples)

    before = log_odds(start, samples)
    free = change(D) - before
    projected = change({n: project(g, basis.V[n], Intervention())[0] for n, g in D.items()}) - before
    assert free > 0 and abs(projected) < 0.01 * free
