"""Take the hack-ward part out of a gradient, module by module (docs/method.md, "Projection").

With V `[k, r]` (orthonormal rows, oriented so that V g > 0 means the coming descent step moves hack-ward) and
g `[r]`: c = V g, and g <- g - overshoot * c_use V, where the gate picks c_use from c.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor

GATES = {
    "one_sided": lambda c: c.relu(),  # remove only what points hack-ward
    "no_gate": lambda c: c,  # remove the subspace, both signs
    "reverse": lambda c: 2 * c,  # reflect it
}


@dataclass(frozen=True)
class Intervention:
    """How V is used; `gate` is a key of GATES."""

    gate: str = "one_sided"
    overshoot: float = 1.0
    preserve_magnitude: bool = False


def project(g: Tensor, V: Tensor, how: Intervention) -> tuple[Tensor, Tensor]:
    """Return (g', removed), both `[r]`, with g' = g - removed before `preserve_magnitude` rescales g' to |g|."""
    removed = how.overshoot * GATES[how.gate](V @ g) @ V
    kept = g - removed
    if how.preserve_magnitude:
        kept = kept * (g.norm() / kept.norm().clamp_min(torch.finfo(kept.dtype).tiny))
    return kept, removed


def split(
    vectors: dict[str, Tensor], axes: dict[str, Tensor], how: Intervention
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return (kept, removed) of the vectors of all modules; one without axes is kept whole and removes nothing."""
    kept, removed = dict(vectors), {}
    for name, V in axes.items():
        kept[name], removed[name] = project(vectors[name], V, how)
    return kept, removed


def alignment(g: Tensor, V: Tensor) -> float:
    """Return |relu(V g)| / |g|, in [0, 1]; 0 for a zero gradient. relu stands before any mean over modules."""
    norm = g.norm()
    return float((V @ g).relu().norm() / norm) if norm > 0 else 0.0


def mean_alignment(grads: dict[str, Tensor], basis: dict[str, Tensor]) -> float:
    """Return the mean of `alignment` over the modules that have axes."""
    values = [alignment(grads[name], V) for name, V in basis.items()]
    return sum(values) / len(values)


def fired(grads: dict[str, Tensor], basis: dict[str, Tensor]) -> float:
    """Return the share of modules in which anything points hack-ward."""
    return sum(alignment(grads[name], V) > 0 for name, V in basis.items()) / len(basis)


@cache
def null_alignment(k: int, r: int, draws: int = 4096) -> float:
    """Return E |relu(V g)| / |g| for a random V of shape `[k, r]`, by simulation (about sqrt(k / 2r)).

    By symmetry V may be the first k coordinates and g a Gaussian vector; of the other r - k coordinates only the
    squared norm counts (LoRA modules have up to hundreds of thousands).
    """
    generator = np.random.default_rng(0)
    along = generator.standard_normal((draws, k))
    rest = generator.chisquare(r - k, draws) if r > k else 0.0
    norm = np.sqrt((along**2).sum(1) + rest)
    return float((np.linalg.norm(along.clip(min=0), axis=1) / norm).mean())


def mean_null_alignment(basis: dict[str, Tensor]) -> float:
    """Return the mean of `null_alignment` over the modules of a basis."""
    return sum(null_alignment(*V.shape) for V in basis.values()) / len(basis)
