"""A base model, its adapter and what is trained: delta_S and, for routing, the quarantine delta_S_hack."""

from dataclasses import dataclass, field
from pathlib import Path

from projected_grpo.method.adapter import Adapter, AntiPaSTO, Parameters, load_svd
from projected_grpo.method.lora import LoRA
from projected_grpo.model.load import Tokenizer, load
from projected_grpo.model.qwen3 import Qwen3


@dataclass
class Policy:
    """theta: trained; quarantine: what `route` trains beside it and deployment ablates (absent otherwise)."""

    base: Qwen3
    tokenizer: Tokenizer
    adapter: Adapter
    theta: Parameters = field(default_factory=dict)
    quarantine: Parameters | None = None

    def merged(self, ablated: bool = False) -> Qwen3:
        """Return the model with W' merged; `ablated` leaves the quarantine out."""
        theta = self.theta
        if self.quarantine is not None and not ablated:
            theta = {name: value + self.quarantine[name] for name, value in theta.items()}
        return self.base.replace(self.adapter.merge(theta))


def make_adapter(kind: str, base: Qwen3, svd: Path | None) -> Adapter:
    """Return the adapter `antipasto` (from a stored SVD) or `lora` on all Linears of a model."""
    weights = {name: base.weights[f"{name}.weight"] for name in base.linears}
    if kind == "lora":
        return LoRA(weights)
    return AntiPaSTO(weights, load_svd(svd, base.linears, str(base.device)))


def load_policy(
    kind: str, model: str, svd: Path | None, dtype: str, device: str, route: bool = False
) -> Policy:
    """Load a base checkpoint with a zero adapter."""
    base, tokenizer = load(model, dtype, device)
    adapter = make_adapter(kind, base, svd)
    return Policy(base, tokenizer, adapter, adapter.zeros(), adapter.zeros() if route else None)
