"""Projection, its diagnostics and the null, against algebra."""

import math

import pytest
import torch

from projected_grpo.method.projection import (
    Intervention,
    alignment,
    fired,
    mean_alignment,
    null_alignment,
    project,
    split,
)


def orthonormal(k, r, seed=0):
    return torch.linalg.qr(
        torch.randn(r, k, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    ).Q.T


G = torch.randn(12, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
V = orthonormal(4, 12)


def test_one_sided_leaves_no_positive_component_and_touches_nothing_else():
    kept, removed = project(G, V, Intervention())
    assert float((V @ kept).max()) <= 1e-12
    complement = torch.eye(12, dtype=torch.float64) - V.T @ V
    torch.testing.assert_close(complement @ kept, complement @ G)
    negative = (V @ G).clamp_max(0)
    torch.testing.assert_close(V @ kept, negative)
    torch.testing.assert_close(kept + removed, G)


def test_no_gate_removes_the_subspace_and_reverse_reflects_it():
    none, _ = project(G, V, Intervention("no_gate"))
    torch.testing.assert_close(V @ none, torch.zeros(4, dtype=torch.float64), atol=1e-12, rtol=0)
    back, _ = project(G, V, Intervention("reverse"))
    torch.testing.assert_close(V @ back, -(V @ G))
    assert float(back.norm()) == pytest.approx(float(G.norm()))


def test_overshoot_and_magnitude():
    over, _ = project(G, V, Intervention(overshoot=1.5))
    torch.testing.assert_close(V @ over, V @ G - 1.5 * (V @ G).relu())
    same, _ = project(G, V, Intervention(preserve_magnitude=True))
    assert float(same.norm()) == pytest.approx(float(G.norm()))
    plain, _ = project(G, V, Intervention())
    torch.testing.assert_close(same / same.norm(), plain / plain.norm())


def test_relu_stands_before_the_mean_over_modules():
    axes = torch.eye(12, dtype=torch.float64)[:4]
    grads = {"a": axes[0].clone(), "b": -axes[0], "c": torch.zeros(12, dtype=torch.float64)}
    basis = {"a": axes, "b": axes, "c": axes}
    assert mean_alignment(grads, basis) == pytest.approx(1 / 3)
    assert fired(grads, basis) == pytest.approx(1 / 3)
    assert alignment(grads["c"], axes) == 0.0


def test_null_is_the_mean_over_random_subspaces():
    r, k = 40, 5
    g = torch.randn(r, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    brute = [alignment(g, orthonormal(k, r, seed)) for seed in range(2000)]
    error = torch.tensor(brute).std().item() / math.sqrt(len(brute))
    assert abs(null_alignment(k, r) - sum(brute) / len(brute)) < 5 * error
    assert null_alignment(k, r) == pytest.approx(math.sqrt(k / (2 * r)), rel=0.15)


def test_a_module_without_axes_is_kept_whole():
    vectors = {"a": G, "b": G}
    kept, removed = split(vectors, {"a": V}, Intervention("no_gate"))
    assert kept["b"] is G and set(removed) == {"a"}
    torch.testing.assert_close(kept["a"], project(G, V, Intervention("no_gate"))[0])
