"""Dr.GRPO against a loop written from the formula, AdamW against torch's."""

import math

import pytest
import torch

from projected_grpo.method.gradients import Gradient
from projected_grpo.method.loss import advantages, grpo_loss, k3
from projected_grpo.method.optimizer import AdamW, learning_rate, total_norm


def test_advantages_are_centred_and_a_constant_group_is_exactly_zero():
    rewards = [0.1, 3.5, 0.5, 3.5]
    mean = sum(rewards) / 4
    assert advantages(torch.tensor(rewards)).tolist() == pytest.approx([r - mean for r in rewards], abs=1e-6)
    assert not advantages(torch.tensor([0.7] * 4)).any()


def test_loss_and_gradient_equal_the_formula():
    generator = torch.Generator().manual_seed(0)
    logp = (torch.randn(9, generator=generator, dtype=torch.float64) - 2).requires_grad_()
    old = logp.detach() + 0.5 * torch.randn(9, generator=generator, dtype=torch.float64)
    A = torch.randn(9, generator=generator, dtype=torch.float64)
    loss = grpo_loss(logp, old, A, scale=24.0)
    total, slope = 0.0, []
    for lp, o, a in zip(logp.tolist(), old.tolist(), A.tolist(), strict=True):
        rho = math.exp(lp - o)
        clipped = min(max(rho, 0.8), 1.2)
        total -= min(rho * a, clipped * a) / 24
        slope.append(-rho * a / 24 if rho * a <= clipped * a else 0.0)
    assert float(loss) == pytest.approx(total)
    (gradient,) = torch.autograd.grad(loss, logp)
    assert gradient.tolist() == pytest.approx(slope)


def test_at_ratio_one_the_gradient_is_the_policy_gradient():
    logp = torch.tensor([-1.0, -2.0, -0.5], requires_grad=True)
    A = torch.tensor([1.5, -0.5, 0.0])
    (gradient,) = torch.autograd.grad(grpo_loss(logp, logp.detach(), A, 10.0), logp)
    torch.testing.assert_close(gradient, -A / 10)


def test_k3_is_zero_at_equality_and_unbiased_for_the_kl():
    p = torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64)
    q = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    assert float(k3(p.log(), p.log()).abs().max()) == 0.0
    assert float((p * k3(p.log(), q.log())).sum()) == pytest.approx(float((p * (p / q).log()).sum()))


def test_adamw_equals_torch():
    generator = torch.Generator().manual_seed(0)
    start = {name: torch.randn(5, generator=generator, dtype=torch.float64) for name in "ab"}
    leaves = {name: value.clone().requires_grad_() for name, value in start.items()}
    reference = torch.optim.AdamW(leaves.values(), lr=0.1, betas=(0.5, 0.9), weight_decay=0.03)
    ours, theta = AdamW(start, (0.5, 0.9), 0.03), dict(start)
    for _ in range(6):
        grads = {name: torch.randn(5, generator=generator, dtype=torch.float64) for name in "ab"}
        for name, leaf in leaves.items():
            leaf.grad = grads[name].clone()
        reference.step()
        theta = ours.apply(theta, ours.direction(grads), 0.1)
        for name in "ab":
            torch.testing.assert_close(theta[name], leaves[name].detach())


def test_learning_rate_warms_up_peaks_and_falls():
    rates = [learning_rate(step, 20, 0.12, 0.1) for step in range(1, 21)]
    assert rates[:2] == pytest.approx([0.06, 0.12])
    assert rates[1:] == sorted(rates[1:], reverse=True) and rates[-1] > 0


def test_clip_scales_the_joint_norm():
    student, teacher = ({"a": torch.tensor([a]), "b": torch.tensor([b])} for a, b in ((1.0, 4.0), (2.0, 0.0)))
    gradient = Gradient(student, teacher, 0.0, torch.zeros(0), torch.zeros(0), 1)
    clipped = gradient.clipped(1.0)
    assert total_norm(clipped.total) == pytest.approx(1.0)
    assert float(clipped.student["b"]) == pytest.approx(0.8) and float(clipped.teacher["a"]) == pytest.approx(
        0.4
    )
    assert gradient.clipped(6.0) is gradient.clipped(None) is gradient
