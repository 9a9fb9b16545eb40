"""AntiPaSTO on a transformers model: every adapted Linear computes y = x W^T + U diag(delta_S) Vh x + b.

The pipeline merges W' once a step and derives the gradient of delta_S from activations (`method.adapter`). Here a
trainer owns the loop, so delta_S is a parameter under autograd, and W' is merged only while nothing is trained.
"""

from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from projected_grpo.errors import UserError
from projected_grpo.method.adapter import AntiPaSTO, decompose
from projected_grpo.method.peft_export import save_peft


class AntiPaSTOLinear(nn.Linear):
    """A Linear whose weight is frozen; `delta_S [r]` is trained, float32, zero at the start.

    `weight` and `bias` are those of the Linear that it replaces, under the same names.
    """

    U: Tensor
    Vh: Tensor

    def __init__(self, linear: nn.Linear):
        nn.Module.__init__(self)
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.weight, self.bias = linear.weight, linear.bias
        U, _, Vh = decompose(linear.weight.detach())
        # No part of a checkpoint: they follow from the weight.
        self.register_buffer("U", U.to(linear.weight.dtype), persistent=False)
        self.register_buffer("Vh", Vh.to(linear.weight.dtype), persistent=False)
        self.delta_S = nn.Parameter(torch.zeros(U.shape[1], device=U.device))
        self._merged: tuple[int, Tensor] | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Return y `[..., d_out]` of x `[..., d_in]`."""
        if torch.is_grad_enabled() or self.delta_S.grad is not None:
            self._merged = None  # an optimizer may step next, and a fused one does not count as a version
            y = F.linear(x, self.weight, self.bias)
            change = F.linear(x, self.Vh) * self.delta_S  # float32, so that its gradient is summed in float32
            return y + F.linear(change.to(y.dtype), self.U)
        version = self.delta_S._version
        if self._merged is None or self._merged[0] != version:
            self._merged = (version, self.merged())
        return F.linear(x, self._merged[1], self.bias)

    @torch.no_grad()
    def merged(self) -> Tensor:
        """Return W' `[d_out, d_in]`, computed in float32 and rounded once; W itself where delta_S is zero."""
        if not self.delta_S.any():
            return self.weight
        with torch.autocast(self.weight.device.type, enabled=False):
            change = (self.U.float() * self.delta_S) @ self.Vh.float()
            return (self.weight.float() + change).to(self.weight.dtype)


def attach(model: nn.Module) -> nn.Module:
    """Give every Linear of a model but its head an AntiPaSTO adapter, freeze the rest, and return the model.

    The model is changed in place and computes what it did before. Raises UserError where it has adapters already, no
    Linear, or quantised ones.
    """
    if any(isinstance(module, AntiPaSTOLinear) or hasattr(module, "lora_A") for module in model.modules()):
        raise UserError("attach: the model has an adapter already, allowed: a plain transformers model")
    whole: Any = model
    head = whole.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    linears = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and module is not head
    }
    if not linears:
        raise UserError(f"attach: {type(model).__name__} has no nn.Linear beside its head, nothing to adapt")
    for name, linear in linears.items():
        if type(linear) is not nn.Linear or not linear.weight.is_floating_point():
            raise UserError(f"attach: {name} is a {type(linear).__name__}, allowed: an unquantised nn.Linear")
    model.requires_grad_(False)
    for name, linear in linears.items():
        parent, _, own = name.rpartition(".")
        setattr(model.get_submodule(parent), own, AntiPaSTOLinear(linear))
    return model


def export(model: nn.Module, folder: str | Path, merged: bool = False) -> None:
    """Write what was trained as a PEFT LoRA of full rank or, `merged`, as a checkpoint that transformers loads.

    Raises UserError where the model has no AntiPaSTO adapters.
    """
    whole: Any = model
    adapted = {n: module for n, module in model.named_modules() if isinstance(module, AntiPaSTOLinear)}
    if not adapted:
        raise UserError("export: the model has no AntiPaSTO adapters; `attach` gives it some")
    if merged:
        state = {n: tensor for n, tensor in model.state_dict().items() if not n.endswith(".delta_S")}
        state |= {f"{name}.weight": module.merged() for name, module in adapted.items()}
        whole.save_pretrained(folder, state_dict=state)
        return
    weights = {name: module.weight for name, module in adapted.items()}
    svd = {name: (module.U.float(), module.Vh.float()) for name, module in adapted.items()}
    theta = {name: module.delta_S.detach() for name, module in adapted.items()}
    save_peft(AntiPaSTO(weights, svd), theta, whole.config.name_or_path, Path(folder))
