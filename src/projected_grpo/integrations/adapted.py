"""What is trained of a live transformers model, as one flat vector a module: LoRA of PEFT or AntiPaSTO.

A LoRA's vector is A and then B, flattened, as in `method.lora`. Names are those of the base model's modules
(`model.layers.0.self_attn.q_proj`), whatever wraps them.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, distribute_tensor

from projected_grpo.errors import UserError
from projected_grpo.integrations.antipasto import AntiPaSTOLinear
from projected_grpo.method.basis import content_hash

WRAPPERS = re.compile(r"^(module\.|_orig_mod\.|base_model\.model\.)+|_checkpoint_wrapped_module\.")


def whole(tensor: Tensor) -> Tensor:
    """Return a tensor with all its shards; every process of its mesh must ask."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


class _Whole(dict):
    """Tensors that are put together one at a time, as they are read."""

    def __getitem__(self, name: str) -> Tensor:
        return whole(super().__getitem__(name).detach())


@dataclass(frozen=True)
class Adapted:
    """The trained parameters of each adapted module in the order of its vector, and the weight beneath them.

    kind: `antipasto` or `lora`; rank: of its LoRA or, for AntiPaSTO, r.
    """

    kind: str
    parameters: dict[str, tuple[nn.Parameter, ...]]
    weights: dict[str, Tensor]
    ranks: dict[str, int]

    @property
    def trained(self) -> list[nn.Parameter]:
        return [p for parts in self.parameters.values() for p in parts]

    @property
    def sharded(self) -> bool:
        """Whether FSDP2 holds the parameters."""
        return any(isinstance(p, DTensor) for p in self.trained)

    @property
    def sizes(self) -> dict[str, int]:
        return {name: sum(p.numel() for p in parts) for name, parts in self.parameters.items()}

    def flat(self, tensors: Iterable[Tensor | None]) -> dict[str, Tensor]:
        """Return one float32 vector a module from a tensor per parameter, in the order of `trained`; None is zero."""
        left, vectors = iter(tensors), {}
        for name, parts in self.parameters.items():
            own = [torch.zeros_like(p) if t is None else t for p, t in zip(parts, left, strict=False)]
            vectors[name] = torch.cat([whole(t.detach()).float().flatten() for t in own])
        return vectors

    def set_gradient(self, vectors: dict[str, Tensor]) -> None:
        """Write vectors into the gradients of the modules that they name; what has no gradient gets none."""
        for name, vector in vectors.items():
            parts = self.parameters[name]
            for p, piece in zip(parts, vector.split([p.numel() for p in parts]), strict=True):
                if p.grad is None:
                    continue
                new = piece.view(p.shape).to(p.grad.dtype)
                if isinstance(p.grad, DTensor):
                    p.grad = distribute_tensor(new, p.grad.device_mesh, p.grad.placements)
                else:
                    p.grad.copy_(new)

    def model_hash(self) -> str:
        """Return the hash of the adapted weights, as in a basis file of the pipeline."""
        return content_hash(_Whole(self.weights))

    def factors_hash(self) -> str:
        """Return the hash of the trained parameters: where in LoRA space the model stands."""
        return content_hash(self.flat(self.trained))


def adapted(model: nn.Module) -> Adapted:
    """Find the trained adapters of a model. Raises UserError where there are none, or more on a module than one has."""
    parameters: dict[str, tuple[nn.Parameter, ...]] = {}
    weights, ranks, kinds = {}, {}, set()
    for path, module in model.named_modules():
        name = WRAPPERS.sub("", path)
        if isinstance(module, AntiPaSTOLinear):
            kinds.add("antipasto")
            parameters[name], weights[name] = (module.delta_S,), module.weight
            ranks[name] = module.delta_S.numel()
        elif isinstance(getattr(module, "lora_A", None), nn.ModuleDict) and hasattr(module, "base_layer"):
            active = [key for key, A in module.lora_A.items() if A.weight.requires_grad]
            if not active:
                continue
            if len(active) > 1:
                raise UserError(f"{name}: adapters {', '.join(active)} are trained at once, allowed: one")
            kinds.add("lora")
            A, B = module.lora_A[active[0]].weight, module.lora_B[active[0]].weight
            for own, p in module.named_parameters():
                # Two parameters of one module, as experts have, are a LoRA around a LoRA: a module each.
                if p.requires_grad and p is not A and p is not B and not own.startswith("base_layer.lora_"):
                    raise UserError(
                        f"{name}: {own} is trained beside A and B, allowed: a LoRA of these alone"
                    )
            beneath = module.get_param() if hasattr(module, "get_param") else module.base_layer.weight
            parameters[name], weights[name] = (A, B), beneath
            ranks[name] = A.shape[0]
    if len(kinds) != 1:
        found = "none" if not kinds else "LoRA beside AntiPaSTO"
        raise UserError(
            f"trained adapters: {found}, allowed: a LoRA of PEFT, or AntiPaSTO by `attach(model)`"
        )
    return Adapted(kinds.pop(), parameters, weights, ranks)
