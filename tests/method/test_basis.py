"""The hack basis: sign, span, knobs and controls, against SVD algebra and the model's own log-probs."""

import itertools
import subprocess
import sys

import pytest
import torch
from tiny import tiny_adapter, tiny_model, tiny_samples

from projected_grpo.errors import UserError
from projected_grpo.method.basis import Basis, Knobs, extract, overlap, sample_cosine
from projected_grpo.method.gradients import Sample, sample_gradients
from projected_grpo.method.projection import Intervention, project
from projected_grpo.model.decoder import Batch


def gradients(n=6, size=10, seed=0):
    generator = torch.Generator().manual_seed(seed)
    names = ("one", "two")
    return tuple({m: torch.randn(n, size, generator=generator) for m in names} for _ in range(2))


def test_axes_are_orthonormal_and_span_the_top_of_d():
    hack, clean = gradients()
    basis = extract(hack, clean, Knobs(top_k=3))
    for name, V in basis.V.items():
        torch.testing.assert_close(V @ V.T, torch.eye(3), atol=1e-5, rtol=0)
        D = (hack[name] - clean[name]).double()
        values, vectors = torch.linalg.eigh(D.T @ D)
        top = vectors[:, -3:]
        assert float((V.double() @ top).square().sum()) == pytest.approx(3, abs=1e-4)
        torch.testing.assert_close(basis.S[name].double(), values[-3:].flip(0).sqrt(), atol=1e-4, rtol=1e-4)


def test_orientation_is_the_majority_of_the_pairs_and_a_tie_goes_by_the_mean():
    hack, clean = gradients(n=7)
    basis = extract(hack, clean, Knobs(top_k=4))
    for name, V in basis.V.items():
        agree = ((hack[name] - clean[name]) @ V.T > 0).sum(0)
        assert bool((agree >= 4).all())
    tie = {"m": torch.tensor([[3.0, 0.0], [-1.0, 0.0]])}
    zero = {"m": torch.zeros(2, 2)}
    assert float(extract(tie, zero, Knobs(top_k=1)).V["m"][0, 0]) > 0


def logprob_margin(model, pair):
    batch = Batch([(pair[0].prompt, sample.completion) for sample in pair])
    logp = model.logprobs(batch)
    n = len(pair[0].completion)
    return float(logp[:n].mean() - logp[n:].mean())


def pair_setup():
    model = tiny_model()
    adapter = tiny_adapter(model)
    first, second = tiny_samples(2, seed=4)
    pair = (first, Sample(first.prompt, second.completion))
    grads, _ = sample_gradients(model, adapter, pair)
    return model, adapter, pair, {n: g[:1] for n, g in grads.items()}, {n: g[1:] for n, g in grads.items()}


def test_a_descent_step_along_d_raises_hack_and_with_one_pair_projection_removes_it():
    model, adapter, pair, hack, clean = pair_setup()
    D = {name: (hack[name] - clean[name])[0] for name in adapter.names}
    basis = extract(hack, clean, Knobs(top_k=1))
    eta = 1e-2
    start = logprob_margin(model, pair)

    def change(step):
        return (
            logprob_margin(model.replace(adapter.merge({n: -eta * d for n, d in step.items()})), pair) - start
        )

    plain = change(D)
    projected = change({name: project(D[name], basis.V[name], Intervention())[0] for name in D})
    assert plain > 0
    assert abs(projected) < 0.01 * plain


def test_the_share_that_remains_is_one_minus_the_removed_energy():
    hack, clean = gradients(n=5)
    basis = extract(hack, clean, Knobs(top_k=2))
    for name, V in basis.V.items():
        for d in hack[name] - clean[name]:
            kept, _ = project(d, V, Intervention())
            share = float(d @ kept / (d @ d))
            expected = 1 - float((V @ d).relu().square().sum() / (d @ d))
            assert share == pytest.approx(expected, abs=1e-5)


def test_tau_noise_floor_and_k_drop_axes():
    scale = torch.tensor([[10.0], [5.0], [1.0], [0.1]])
    hack = {"big": torch.eye(4) * scale, "small": torch.eye(4) * 0.01 * scale}
    clean = {name: torch.zeros(4, 4) for name in hack}
    assert [len(V) for V in extract(hack, clean, Knobs(top_k=4, tau=0.25)).V.values()] == [2, 2]
    full = extract(hack, clean, Knobs(top_k=4))
    assert [len(V) for V in full.used(k=3).V.values()] == [3, 3]
    # Pooled: .001 .01 .05 .1 | .1 1 5 10; above the 0.6 quantile stand three axes of "big", and "small" drops out.
    assert {name: len(V) for name, V in full.used(k=5, drop_bottom_frac=0.6).V.items()} == {"big": 3}


def test_solve_orth_strips_the_clean_directions():
    hack, clean = gradients(n=6, size=12)
    basis = extract(hack, clean, Knobs(top_k=4, solve_orth_m=2))
    for name, V in basis.V.items():
        W = torch.linalg.svd(clean[name]).Vh[:2]
        assert float((V @ W.T).abs().max()) < 1e-5


def test_mean_diff_is_the_normalised_mean():
    hack, clean = gradients()
    basis = extract(hack, clean, Knobs(method="mean_diff"))
    for name, V in basis.V.items():
        mean = (hack[name] - clean[name]).mean(0)
        torch.testing.assert_close(V[0], mean / mean.norm())


def test_controls():
    hack, clean = gradients(n=8, size=20)
    real = extract(hack, clean, Knobs(top_k=8))
    shuffled = extract(hack, clean, Knobs(top_k=8, control="shuffled", seed=41))
    assert overlap(real.V, shuffled.V) == pytest.approx(1.0, abs=1e-4)
    assert any(not torch.allclose(real.V[n], shuffled.V[n], atol=1e-3) for n in real.V)
    # One exchange of labels explains every module: found by trying all 2^8 of them.
    means = extract(hack, clean, Knobs(method="mean_diff", control="shuffled", seed=41))
    exchanges = []
    for signs in itertools.product((-1.0, 1.0), repeat=8):
        mean = {name: (torch.tensor(signs)[:, None] * (hack[name] - clean[name])).mean(0) for name in hack}
        if all(torch.allclose(means.V[name][0], mean[name] / mean[name].norm(), atol=1e-5) for name in mean):
            exchanges.append(signs)
    assert len(exchanges) == 1 and set(exchanges[0]) == {-1.0, 1.0}
    random = extract(hack, clean, Knobs(top_k=8, control="random", seed=41))
    again = extract(hack, clean, Knobs(top_k=8, control="random", seed=41))
    other = extract(hack, clean, Knobs(top_k=8, control="random", seed=42))
    for name, V in random.V.items():
        assert V.shape == real.V[name].shape
        torch.testing.assert_close(V @ V.T, torch.eye(8), atol=1e-5, rtol=0)
        assert torch.equal(V, again.V[name]) and not torch.equal(V, other.V[name])
    drawn = [extract(hack, clean, Knobs(top_k=8, control="random", seed=41, draw=n)) for n in (0, 2, 4, 2)]
    for name, V in random.V.items():
        first, second, third, twice = (basis.V[name] for basis in drawn)
        assert torch.equal(V, first) and torch.equal(second, twice)
        assert float((first @ second.T).norm()) < 2.5 > float((second @ third.T).norm())  # 8 if they were one
    shifted = {
        name: h + 100 for name, h in hack.items()
    }  # a pure hack contrast is invisible to clean controls
    for control in ("clean_vs_clean", "within_class"):
        ours = extract(shifted, clean, Knobs(top_k=5, control=control))
        ones = torch.ones(20) / 20**0.5
        assert all(float((V @ ones).norm()) < 0.9 for V in ours.V.values()), control


def test_equal_sides_are_refused():
    hack, _ = gradients()
    with pytest.raises(UserError, match="do not differ"):
        extract(hack, hack, Knobs())


def test_file_round_trip_keeps_order_values_and_metadata(tmp_path):
    hack, clean = gradients()
    hack = {"z": hack["one"], "a": hack["two"]}
    clean = {"z": clean["one"], "a": clean["two"]}
    basis = extract(hack, clean, Knobs(top_k=3), {"pairs": "own"})
    path = tmp_path / "basis.safetensors"
    basis.save(path)
    loaded = Basis.load(path)
    assert list(loaded.V) == ["z", "a"] and loaded.metadata["pairs"] == "own"
    for name in basis.V:
        assert torch.equal(loaded.V[name], basis.V[name])
        torch.testing.assert_close(loaded.S[name], basis.S[name])
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(UserError, match=r"basis\.safetensors"):
        Basis.load(path)


def test_sample_cosine_equals_the_formula_and_its_bound():
    hack, clean = gradients(n=4)
    basis = extract(hack, clean, Knobs(top_k=3))
    cosine, normalised = sample_cosine(hack, basis)
    for i in range(4):
        inner = sum(
            float(
                hack[m][i] @ (v := sum(s * a for s, a in zip(basis.S[m], basis.V[m], strict=True))) / v.norm()
            )
            for m in basis.V
        )
        norm = sum(float(hack[m][i] @ hack[m][i]) for m in basis.V) ** 0.5
        assert float(cosine[i]) == pytest.approx(inner / norm, abs=1e-5)
        assert float(normalised[i]) == pytest.approx(inner / norm / 2**0.5, abs=1e-5)
    direction = {m: (basis.S[m] @ basis.V[m])[None] for m in basis.V}
    unit = {m: d / d.norm() for m, d in direction.items()}
    assert float(sample_cosine(unit, basis)[1]) == pytest.approx(1.0, abs=1e-5)


def test_equal_bases_of_two_processes_are_equal_bytes(tmp_path):
    """The library writes its metadata in an order that differs from process to process."""
    code = (
        "import sys, torch; from pathlib import Path; from projected_grpo.method.basis import Basis\n"
        "V, S = {'b': torch.eye(2, 3), 'a': torch.ones(1, 3)}, {'b': torch.ones(2), 'a': torch.ones(1)}\n"
        "made = {f'key {i}': 'ä \"quoted\" \\n \\x01' * i for i in range(9)}\n"
        "Basis(V, S, made).save(Path(sys.argv[1]))\n"
    )
    written = set()
    for i in range(4):
        subprocess.run([sys.executable, "-c", code, str(tmp_path / str(i))], check=True)
        written.add((tmp_path / str(i)).read_bytes())
    assert len(written) == 1
    read = Basis.load(tmp_path / "0")
    assert read.metadata["key 2"] == 'ä "quoted" \n \x01' * 2 and torch.equal(read.V["b"], torch.eye(2, 3))
