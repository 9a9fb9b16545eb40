"""Dr.GRPO (arXiv:2503.20783): group-centred rewards without /std, a clipped ratio, no length normalisation."""

import torch
from torch import Tensor

CLIP = 0.2


def advantages(rewards: Tensor, keep: Tensor | None = None) -> Tensor:
    """Return A = R - mean(R) of one group, rewards `[G]`. Equal rewards give exact zeros.

    keep: `[G]` bool, the rows that the group consists of; the others get 0 (None: all).
    """
    A = torch.zeros_like(rewards)
    kept = slice(None) if keep is None else keep
    own = rewards[kept]
    if len(own) and (own != own[0]).any():
        A[kept] = own - own.mean()
    return A


def grpo_loss(logp: Tensor, old: Tensor, A: Tensor, scale: float) -> Tensor:
    """Return -sum_t min(rho A, clip(rho, 1 +- 0.2) A) / scale with rho = exp(logp - old).

    logp, old, A: `[tokens]` (completion tokens only; a row's advantage stands at each of its tokens);
    scale: G * max_new * prompts_per_step.
    """
    rho = (logp - old).exp()
    return -torch.minimum(rho * A, rho.clamp(1 - CLIP, 1 + CLIP) * A).sum() / scale


def k3(logp: Tensor, reference: Tensor) -> Tensor:
    """Return Schulman's K3 estimate of KL(policy | reference) per token: exp(d) - d - 1, d = reference - logp."""
    d = reference - logp
    return d.exp() - d - 1
