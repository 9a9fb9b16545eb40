"""The hack basis: right singular vectors of D = G_hack - G_clean, per module (docs/method.md, "Basis").

D `[n_pairs, size]` are per-pair differences of completion-NLL gradients. Up to length weighting D is the loss
gradient of a GRPO group with advantage +1 on the hack and -1 on the clean completion, so with V oriented along D
`V g > 0` means that the coming descent step moves hack-ward.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from projected_grpo.errors import UserError
from projected_grpo.files import atomic

Grads = dict[str, Tensor]  # module name -> [n_pairs, size]


TRUSTED = 1 << 32  # the draw of random axes in place of a clean run's, apart from those of any refresh


@dataclass(frozen=True)
class Knobs:
    """How a basis is extracted; see `config/config.yaml` for what each knob means."""

    top_k: int = 12
    tau: float = 0.0
    method: str = "svd"  # svd, mean_diff
    solve_orth_m: int = 0
    control: str = "none"  # none, random, clean_vs_clean, within_class, shuffled
    seed: int = 0  # of the controls
    draw: int = 0  # of `random`: 0 as it is stored, another at each refresh


@dataclass(frozen=True)
class Basis:
    """V `[k, size]` with orthonormal rows and singular values S `[k]` per module; metadata of the extraction."""

    V: dict[str, Tensor]
    S: dict[str, Tensor]
    metadata: dict[str, str]

    def used(self, k: int, drop_bottom_frac: float = 0.0) -> "Basis":
        """Return the basis as a run uses it: noise floor over the pooled S first, then the first k axes.

        An axis is dropped when its S is below the `drop_bottom_frac` quantile of all stored S; a module left
        without axes drops out.
        """
        floor = (
            float(torch.cat(list(self.S.values())).quantile(drop_bottom_frac)) if drop_bottom_frac else 0.0
        )
        V, S = {}, {}
        for name in self.V:
            keep = (self.S[name] >= floor).nonzero().flatten()[:k]
            if len(keep):
                V[name], S[name] = self.V[name][keep], self.S[name][keep]
        return Basis(V, S, self.metadata)

    def save(self, path: Path) -> None:
        """Write one tensor `[k, size]` per module under the module's name; S and the metadata in the header."""
        S = {name: [float(s) for s in values] for name, values in self.S.items()}
        header = {**self.metadata, "singular_values": json.dumps(S)}
        with atomic(path) as temporary:
            save_file({name: V.cpu().contiguous() for name, V in self.V.items()}, temporary, metadata=header)
            sort_metadata(temporary)

    @staticmethod
    def load(path: Path, device: str = "cpu") -> "Basis":
        """Read a basis file. Raises UserError naming the file when it is damaged."""
        try:
            with safe_open(path, "pt", device=device) as file:
                metadata = dict(file.metadata() or {})
                V = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            values = json.loads(metadata.pop("singular_values"))
            S = {name: torch.tensor(values[name], device=device) for name in V}
        except (SafetensorError, OSError, KeyError, ValueError) as error:
            raise UserError(f"{path}: not a readable basis file ({error})") from error
        # safetensors sorts by name; modules keep the model's order in every sum over modules.
        order = json.loads(metadata.get("modules", json.dumps(list(V))))
        return Basis({name: V[name] for name in order}, {name: S[name] for name in order}, metadata)


def sort_metadata(path: Path) -> None:
    """Put a safetensors file's metadata in the order of its keys: the library draws one anew in every process."""
    with open(path, "r+b") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
        text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
        if len(text) > size:
            raise ValueError(f"{path}: a header of {len(text)} bytes in place of {size}")
        file.seek(8)
        file.write(text.ljust(size))


def swapped(hack: Grads, clean: Grads, rng: np.random.Generator) -> tuple[Grads, Grads]:
    """Return the gradients with hack and clean exchanged in pairs drawn by coin, the same pairs in every module."""
    some = next(iter(hack.values()))
    swap = torch.from_numpy(rng.random(len(some)) < 0.5).to(some.device)[:, None]
    exchanged = {name: torch.where(swap, clean[name], hack[name]) for name in hack}
    return exchanged, {name: torch.where(swap, hack[name], clean[name]) for name in hack}


def differences(hack: Tensor, clean: Tensor, control: str) -> Tensor:
    """Return D of one module, `[n, size]`; the controls replace the hack contrast by another."""
    if control == "clean_vs_clean":
        return clean - clean.roll(1, 0)
    if control == "within_class":
        half = len(hack) // 2
        within_hack = hack[:half] - hack[:half].roll(1, 0)
        return torch.cat([within_hack, clean[half:] - clean[half:].roll(1, 0)])
    return hack - clean


def strip(D: Tensor, clean: Tensor, m: int) -> Tensor:
    """Remove the top-m right singular directions of G_clean from every row of D."""
    W = torch.linalg.svd(clean, full_matrices=False).Vh[:m]
    return D - D @ W.T @ W


def orient(V: Tensor, D: Tensor) -> Tensor:
    """Flip each axis so that most pairs agree with it, V D_i > 0; a tie goes by the sign of the mean."""
    along = D @ V.T  # [n_pairs, k]
    votes = along.sign().sum(0)
    sign = torch.where(votes != 0, votes.sign(), along.mean(0).sign())
    return V * torch.where(sign == 0, torch.ones_like(sign), sign)[:, None]


def random_axes(k: int, size: int, rng: np.random.Generator) -> Tensor:
    """Return orthonormal rows `[k, size]`, float32, of a uniformly drawn subspace."""
    return torch.linalg.qr(torch.from_numpy(rng.standard_normal((size, k))).float()).Q.T.contiguous()


def module_axes(hack: Tensor, clean: Tensor, knobs: Knobs, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Return (V `[k, size]`, S `[k]`) of one module; k <= top_k, fewer where D has a lower rank."""
    size = hack.shape[1]
    k = min(knobs.top_k, *hack.shape)
    if knobs.control == "random":
        return random_axes(k, size, rng).to(hack), torch.ones(k, device=hack.device)
    D = differences(hack, clean, knobs.control)
    if knobs.solve_orth_m:
        D = strip(D, clean, knobs.solve_orth_m)
    if knobs.method == "mean_diff":
        mean = D.mean(0)
        norm = mean.norm()
        return (mean / norm)[None], norm[None]
    _, S, Vh = torch.linalg.svd(D, full_matrices=False)
    rank = int((S[0] * max(D.shape) * torch.finfo(S.dtype).eps < S).sum())  # axes of rounding noise are none
    keep = min(k, rank, int((knobs.tau * S[0] <= S).sum()))
    return orient(Vh[:keep], D), S[:keep]


def basis_rng(seed: int, draw: int = 0) -> np.random.Generator:
    """Return the generator of a basis's controls; draws of one seed have nothing in common."""
    return np.random.Generator(np.random.Philox(key=[seed, 0xBA515], counter=[0, 0, 0, draw]))


def extract(hack: Grads, clean: Grads, knobs: Knobs, metadata: dict[str, str] | None = None) -> Basis:
    """Extract the basis from per-pair gradients `[n_pairs, size]` per module.

    Raises UserError when a module has no difference at all (hack equals clean in every pair).
    """
    rng = basis_rng(knobs.seed, knobs.draw if knobs.control == "random" else 0)
    if knobs.control == "shuffled":
        hack, clean = swapped(hack, clean, rng)
    V, S = {}, {}
    for name in hack:
        V[name], S[name] = module_axes(hack[name].float(), clean[name].float(), knobs, rng)
        if not len(V[name]) or not torch.isfinite(V[name]).all():
            raise UserError(f"basis: hack and clean gradients of {name} do not differ (or are not finite)")
    return Basis(V, S, {**(metadata or {}), "modules": json.dumps(list(V))})


def overlap(a: dict[str, Tensor], b: dict[str, Tensor]) -> float:
    """Return the mean over modules of |A B^T|_F^2 / min(k_a, k_b): 1 for equal spans, about k/r for random ones."""
    shared = [name for name in a if name in b]
    values = [float((a[n] @ b[n].T).square().sum()) / min(len(a[n]), len(b[n])) for n in shared]
    return sum(values) / len(values)


def sample_cosine(g: dict[str, Tensor], basis: Basis) -> tuple[Tensor, Tensor]:
    """Return (`cos_S_contrib`, its value divided by sqrt(modules)) of per-sample gradients `[n, size]`.

    sum_m <g_m, v_m> / sqrt(sum_m |g_m|^2) with v_m the normalised sum of S_i v_i over the axes used.
    """
    inner: Any
    norm: Any
    inner, norm = 0.0, 0.0  # then `[n]`
    for name, V in basis.V.items():
        direction = basis.S[name] @ V
        inner = inner + g[name] @ (direction / direction.norm())
        norm = norm + g[name].square().sum(1)
    cosine = inner / norm.sqrt()
    return cosine, cosine / len(basis.V) ** 0.5


def content_hash(tensors: dict[str, Tensor]) -> str:
    """Return a short hash of named tensors, to name a model or a basis by its content."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode() + tensors[name].detach().cpu().float().numpy().tobytes())
    return digest.hexdigest()[:16]
