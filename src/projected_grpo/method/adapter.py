"""AntiPaSTO: every Linear W gets W' = W + U diag(delta_S) Vh, with U and Vh of its own reduced SVD.

The forward never sees the adapter: W' is merged once per step, and the gradient of delta_S follows from the
activations, dL/d delta_S = diag(U^T dW' Vh^T) = sum_t (U^T g_t) * (Vh x_t) (docs/method.md, "Adapter").
`Adapter` is the interface that gradients, basis and training know; `method.lora` fills it a second time.
"""

import itertools
import json
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from projected_grpo.errors import UserError
from projected_grpo.files import atomic

Parameters = dict[str, Tensor]  # module name -> flat float32 parameter vector of that module


class Labels:
    """Which label each packed token has: `values [tokens]` in `0 ... n-1`.

    `runs[label]` are the contiguous stretches of a label, so that one matrix product is split into views.
    """

    def __init__(self, values: Tensor, n: int):
        self.values = values
        self.n = n
        starts = [0, *((values[1:] != values[:-1]).nonzero().flatten() + 1).tolist(), len(values)]
        self.runs: list[list[slice]] = [[] for _ in range(n)]
        for start, stop in itertools.pairwise(starts):
            if stop > start:
                self.runs[int(values[start])].append(slice(start, stop))


class Adapter(Protocol):
    """What training needs of an adapter; every module's parameters are one flat float32 vector."""

    names: list[str]
    sizes: dict[str, int]

    def zeros(self) -> Parameters:
        """Return the parameters at which the merged model is the base model, bit for bit."""

    def merge(self, theta: Parameters) -> dict[str, Tensor]:
        """Return W' per module, computed in float32 and rounded once to the model's dtype."""

    def gradient(self, name: str, x: Tensor, g: Tensor, labels: Labels) -> Tensor:
        """Return `[labels.n, size]`: the parameter gradient summed over the tokens of each label.

        x: `[tokens, d_in]` input of the Linear, g: `[tokens, d_out]` gradient of its output.
        """

    def low_rank(self, name: str, change: Tensor) -> tuple[Tensor, Tensor]:
        """Return A `[rank, d_in]` and B `[d_out, rank]` with W' - W = B A."""


@contextmanager
def coarse(x: Tensor) -> Iterator[None]:
    """Let a GPU round what float32 products multiply to TF32's 11 bits, where `x` itself is narrower than that."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = before or (x.is_cuda and x.dtype == torch.bfloat16)
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def weight_gradients(x: Tensor, g: Tensor, labels: Labels) -> Iterator[tuple[int, Tensor]]:
    """Yield each label that has tokens with its dW' `[d_out, d_in]`, float32: one matrix product's rows, split."""
    for label, runs in enumerate(labels.runs):
        if not runs:
            continue
        dW = torch.zeros(g.shape[1], x.shape[1], device=x.device)
        for run in runs:
            # Half-width operands at full speed, their sums never rounded to half width.
            if x.is_cuda and x.dtype != torch.float32:
                dW += torch.mm(g[run].T, x[run], out_dtype=torch.float32)
            else:
                dW = torch.addmm(dW, g[run].T.float(), x[run].float())
        yield label, dW


class AntiPaSTO:
    """delta_S adapters on all `model.linears`.

    weights: `name -> W [d_out, d_in]`; svd: `name -> (U [d_out, r], Vh [r, d_in])`, float32, r = min(d_out, d_in).
    """

    # The gradient comes from one dW' a label or token by token. Narrow modules, where calls cost more than operations,
    # take the first up to MAX_SPLIT labels; of rank WIDE and above the form of fewer operations is taken.
    MAX_SPLIT, WIDE = 4, 256

    def __init__(self, weights: dict[str, Tensor], svd: dict[str, tuple[Tensor, Tensor]]):
        self.names = list(svd)
        self.weights = weights
        self.svd = svd
        self.sizes = {name: U.shape[1] for name, (U, _) in svd.items()}

    def zeros(self) -> Parameters:
        return {name: torch.zeros(size, device=self.svd[name][0].device) for name, size in self.sizes.items()}

    def merge(self, theta: Parameters) -> dict[str, Tensor]:
        merged = {}
        for name, delta in theta.items():
            W = self.weights[name]
            if not delta.any():  # W + 0 is W bit for bit only if nothing is added
                merged[name] = W
                continue
            U, Vh = self.svd[name]
            with coarse(W):
                merged[name] = torch.addmm(W.float(), U * delta, Vh).to(W.dtype)
        return merged

    def gradient(self, name: str, x: Tensor, g: Tensor, labels: Labels) -> Tensor:
        U, Vh = self.svd[name]
        if self._is_split(labels, len(U), U.shape[1], Vh.shape[1]):
            found = torch.zeros(labels.n, U.shape[1], device=x.device)
            with coarse(x):
                for label, dW in weight_gradients(x, g, labels):
                    found[label] = ((U.T @ dW) * Vh).sum(1)
            return found
        per_token = (g.float() @ U) * (x.float() @ Vh.T)
        return torch.zeros(labels.n, U.shape[1], device=x.device).index_add_(0, labels.values, per_token)

    def _is_split(self, labels: Labels, d_out: int, rank: int, d_in: int) -> bool:
        """Return whether the gradient is taken from one dW' for each label that has tokens."""
        if rank < self.WIDE:
            return labels.n <= self.MAX_SPLIT
        tokens, used = len(labels.values), sum(map(bool, labels.runs))
        return (tokens + used * rank) * d_out * d_in < tokens * rank * (d_out + d_in)

    def low_rank(self, name: str, change: Tensor) -> tuple[Tensor, Tensor]:
        U, Vh = self.svd[name]
        return Vh, U * change


def decompose(W: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return U `[d_out, r]`, S `[r]`, Vh `[r, d_in]` of the reduced SVD in float32, signs fixed.

    Each right vector's largest entry is made positive, so that the axes don't depend on the LAPACK build.
    """
    U, S, Vh = torch.linalg.svd(W.float(), full_matrices=False)
    sign = Vh.gather(1, Vh.abs().argmax(1, keepdim=True)).sign()
    return (U * sign.T).contiguous(), S, (Vh * sign).contiguous()


def save_svd(weight: Callable[[str], Tensor], shapes: dict[str, tuple[int, int]], path: Path) -> None:
    """Write U, S and Vh of every module into one safetensors file, holding one module at a time in memory.

    weight: returns W of a module (on the device that shall compute); shapes: `name -> (d_out, d_in)`.
    """
    part: Any  # its name, then the tensor
    header, offset = {}, 0
    for name, (d_out, d_in) in shapes.items():
        r = min(d_out, d_in)
        for part, shape in (("U", [d_out, r]), ("S", [r]), ("Vh", [r, d_in])):
            size = 4 * shape[0] * (shape[1] if len(shape) == 2 else 1)
            header[f"{name}.{part}"] = {
                "dtype": "F32",
                "shape": shape,
                "data_offsets": [offset, offset + size],
            }
            offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with atomic(path) as temporary, open(temporary, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in shapes:
            for part in decompose(weight(name)):
                file.write(part.cpu().contiguous().numpy().tobytes())


def load_svd(path: Path, names: list[str], device: str = "cpu") -> dict[str, tuple[Tensor, Tensor]]:
    """Read `name -> (U, Vh)`. Raises UserError when the file is damaged or is of another model."""
    try:
        with safe_open(path, "pt", device=device) as file:
            return {name: (file.get_tensor(f"{name}.U"), file.get_tensor(f"{name}.Vh")) for name in names}
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path}: damaged SVD file or one of another model ({error}); delete it") from error
