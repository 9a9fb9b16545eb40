"""AdamW on the adapter's flat vectors, with its update direction in reach.

torch's optimizer applies d = m_hat / (sqrt(v_hat) + eps) without showing it. Projecting "what AdamW is about to
apply" (`space: update`) and logging `cout_update` need d itself; the rest is Loshchilov and Hutter's AdamW.
"""

import math

import torch
from torch import Tensor

from projected_grpo.method.adapter import Parameters


class AdamW:
    """Decoupled weight decay Adam; moments are float32 and zero at the start."""

    EPS = 1e-8

    def __init__(self, parameters: Parameters, betas: tuple[float, float], weight_decay: float):
        self.betas = betas
        self.weight_decay = weight_decay
        self.step = 0
        self.m = {name: torch.zeros_like(p) for name, p in parameters.items()}
        self.v = {name: torch.zeros_like(p) for name, p in parameters.items()}

    def direction(self, grads: Parameters) -> Parameters:
        """Advance the moments by `grads` and return d per module; the coming step is theta -= lr * d."""
        self.step += 1
        b1, b2 = self.betas
        directions = {}
        for name, g in grads.items():
            self.m[name] = b1 * self.m[name] + (1 - b1) * g
            self.v[name] = b2 * self.v[name] + (1 - b2) * g * g
            v_hat = self.v[name] / (1 - b2**self.step)
            directions[name] = self.m[name] / (1 - b1**self.step) / (v_hat.sqrt() + self.EPS)
        return directions

    def apply(self, theta: Parameters, directions: Parameters, lr: float) -> Parameters:
        """Return theta after the step, weight decay outside of d."""
        decay = 1 - lr * self.weight_decay
        return {name: decay * theta[name] - lr * d for name, d in directions.items()}

    def state(self) -> dict:
        return {"step": self.step, "m": self.m, "v": self.v}

    def load(self, state: dict) -> None:
        self.step, self.m, self.v = state["step"], state["m"], state["v"]


def learning_rate(step: int, steps: int, peak: float, warmup: float) -> float:
    """Return the rate of step 1 ... steps: linear warm-up over the share `warmup`, then a cosine towards zero."""
    rising = max(1, round(warmup * steps))
    if step <= rising:
        return peak * step / rising
    return peak * 0.5 * (1 + math.cos(math.pi * (step - rising) / (steps - rising + 1)))


def clip_factor(grads: Parameters, limit: float | None) -> float:
    """Return what gradients are scaled by so that their joint norm is at most `limit` (None: no limit)."""
    if limit is None:
        return 1.0
    norm = total_norm(grads)
    return 1.0 if norm <= limit else limit / norm


def total_norm(tensors: dict[str, Tensor]) -> float:
    """Return the norm of all vectors taken together."""
    return math.sqrt(sum(float(t.double().square().sum()) for t in tensors.values()))
