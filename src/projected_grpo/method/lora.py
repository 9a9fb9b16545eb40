"""LoRA behind the same interface as AntiPaSTO: W' = W + (alpha / rank) B A (Hu et al. 2021, arXiv:2106.09685).

A module's parameter vector is the flattened *change* of A and B from their start, so zeros mean the base model.
At B = 0 the gradient of A vanishes (dA = s B^T dW'), which leaves half of LoRA space blind to any basis. B
therefore starts random, scaled like A so that both factors have gradients of one size, and the product of the
starting factors is subtracted: W' = W + s (B A - B0 A0) is the base model at the start, bit for bit.
"""

import math

import torch
from torch import Tensor

from projected_grpo.method.adapter import Labels, Parameters, weight_gradients


class LoRA:
    """Rank-`rank` adapters on the given weights (`name -> W [d_out, d_in]`); parameters are [A - A0, B - B0]."""

    MAX_SPLIT = 4

    def __init__(self, weights: dict[str, Tensor], rank: int = 32, alpha: float = 64.0, seed: int = 0):
        self.weights = weights
        self.names = list(weights)
        self.scale = alpha / rank
        self.rank = rank
        generator = torch.Generator().manual_seed(seed)
        self.start: dict[str, tuple[Tensor, Tensor]] = {}
        for name, W in weights.items():
            d_out, d_in = W.shape
            A = torch.randn(rank, d_in, generator=generator) / math.sqrt(d_in)
            B = torch.randn(d_out, rank, generator=generator) / math.sqrt(d_out)
            self.start[name] = (A.to(W.device), B.to(W.device))
        self.sizes = {name: A.numel() + B.numel() for name, (A, B) in self.start.items()}
        self._current = self.zeros()

    def zeros(self) -> Parameters:
        return {
            name: torch.zeros(size, device=self.start[name][0].device) for name, size in self.sizes.items()
        }

    def factors(self, name: str, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Return A `[rank, d_in]` and B `[d_out, rank]` at the parameters of a module."""
        A0, B0 = self.start[name]
        return A0 + theta[: A0.numel()].view_as(A0), B0 + theta[A0.numel() :].view_as(B0)

    def merge(self, theta: Parameters) -> dict[str, Tensor]:
        merged = {}
        self._current = theta
        for name, change in theta.items():
            W = self.weights[name]
            if not change.any():
                merged[name] = W
                continue
            (A0, B0), (A, B) = self.start[name], self.factors(name, change)
            merged[name] = (W.float() + self.scale * (B @ A - B0 @ A0)).to(W.dtype)
        return merged

    def low_rank(self, name: str, change: Tensor) -> tuple[Tensor, Tensor]:
        (A0, B0), (A, B) = self.start[name], self.factors(name, change)
        return torch.cat([A, A0]), self.scale * torch.cat([B, -B0], dim=1)

    def gradient(self, name: str, x: Tensor, g: Tensor, labels: Labels) -> Tensor:
        """Gradient at the parameters merged last: dB = s dW' A^T, dA = s B^T dW'."""
        A, B = self.factors(name, self._current[name])
        if labels.n <= self.MAX_SPLIT:
            found = torch.zeros(labels.n, self.sizes[name], device=x.device)
            for label, dW in weight_gradients(x, g, labels):
                found[label] = torch.cat([(B.T @ dW).flatten(), (dW @ A.T).flatten()])
            return self.scale * found
        x, g = x.float(), g.float()
        gB, xA = g @ B, x @ A.T  # [tokens, rank] each
        gradient = []
        for label in range(labels.n):
            mask = labels.values == label
            gradient.append(torch.cat([(gB[mask].T @ x[mask]).flatten(), (g[mask].T @ xA[mask]).flatten()]))
        return self.scale * torch.stack(gradient)
