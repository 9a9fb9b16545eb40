"""Muon: momentum whose update is orthogonalised per matrix (Jordan et al. 2024), batched over equal shapes.

fp32 throughout; `torch.optim.Muon` takes one matrix at a time in bfloat16, which is slow on CPU.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

# Quintic that drives every singular value of a matrix into about [0.7, 1.2].
A, B, C = 3.4445, -4.7750, 2.0315


def orthogonalise(X: Tensor, steps: int = 5) -> Tensor:
    """Replace the singular values of `X [n, rows, cols]`, rows <= cols, by about 1 (Newton-Schulz)."""
    X = X / X.norm(dim=(1, 2), keepdim=True).clamp_min(1e-7)
    for _ in range(steps):
        S = X @ X.mT
        X = A * X + torch.baddbmm(S, S, S, beta=B, alpha=C) @ X
    return X


class Muon:
    """Muon over matrices `[rows, cols]`: Nesterov momentum, orthogonalised, decoupled weight decay.

    The step is scaled by sqrt(max(1, rows / cols)), so that its size does not depend on the shape.
    """

    def __init__(
        self, matrices: Iterable[Tensor], lr: float, momentum: float, weight_decay: float, steps: int
    ):
        self.lr, self.momentum, self.weight_decay, self.steps = lr, momentum, weight_decay, steps
        groups: dict[tuple[int, ...], list[Tensor]] = {}
        for W in matrices:
            groups.setdefault(tuple(sorted(W.shape)), []).append(W)
        self.groups = list(groups.values())
        self.momenta = [torch.zeros(len(group), *sorted(group[0].shape)) for group in self.groups]

    def state_dict(self) -> dict[str, list[Tensor]]:
        """Return the momenta, for `load_state_dict`."""
        return {"momenta": self.momenta}

    def load_state_dict(self, state: dict[str, list[Tensor]]) -> None:
        self.momenta = state["momenta"]

    @torch.no_grad()
    def step(self, factor: float) -> None:
        """Update every matrix from its `.grad`, with `lr * factor`; gradients are dropped."""
        for group, momentum in zip(self.groups, self.momenta, strict=True):
            g = torch.stack([W.grad if W.shape[0] <= W.shape[1] else W.grad.mT for W in group])  # type: ignore[misc, union-attr]
            momentum.lerp_(g, 1 - self.momentum)
            update = orthogonalise(g.lerp(momentum, self.momentum), self.steps)
            for W, u in zip(group, update, strict=True):
                rows, cols = W.shape
                lr = self.lr * factor
                W.mul_(1 - lr * self.weight_decay)
                W.sub_(u if rows <= cols else u.mT, alpha=lr * max(1.0, rows / cols) ** 0.5)
                W.grad = None
