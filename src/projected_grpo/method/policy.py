"""A base model, its adapter, and what is trained of it."""

from dataclasses import dataclass, field
from pathlib import Path

from projected_grpo.method.adapter import Adapter, AntiPaSTO, Parameters, load_svd
from projected_grpo.method.lora import LoRA
from projected_grpo.model.decoder import Decoder
from projected_grpo.model.load import load
from projected_grpo.model.tokenizer import Tokenizer


@dataclass
class Policy:
    """theta: what is trained and, unless the arm says otherwise, deployed."""

    base: Decoder
    tokenizer: Tokenizer
    adapter: Adapter
    theta: Parameters = field(default_factory=dict)

    def merged(self, theta: Parameters | None = None) -> Decoder:
        """Return the model with W' of `theta` merged, by default its own."""
        return self.base.replace(self.adapter.merge(self.theta if theta is None else theta))


def make_adapter(kind: str, base: Decoder, svd: Path | None) -> Adapter:
    """Return the adapter `antipasto` (from a stored SVD) or `lora` on all Linears of a model."""
    weights = {name: base.weights[f"{name}.weight"] for name in base.linears}
    if kind == "lora":
        return LoRA(weights)
    return AntiPaSTO(weights, load_svd(svd, base.linears, str(base.device)))  # type: ignore[arg-type]


def load_policy(kind: str, model: str, svd: Path | None, dtype: str, device: str) -> Policy:
    """Load a base checkpoint with a zero adapter."""
    base, tokenizer = load(model, dtype, device)
    adapter = make_adapter(kind, base, svd)
    return Policy(base, tokenizer, adapter, adapter.zeros())
