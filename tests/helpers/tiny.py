"""A random Qwen3 of a few thousand parameters, and random samples, for tests of the method."""

import torch

from projected_grpo.method.adapter import AntiPaSTO, decompose
from projected_grpo.method.gradients import Sample
from projected_grpo.model.architecture import Config, shapes
from projected_grpo.model.decoder import Decoder

CONFIG = Config(
    vocab_size=31,
    hidden_size=16,
    intermediate_size=24,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=4,
    rms_norm_eps=1e-6,
    rope_theta=1e4,
    tie_word_embeddings=True,
)


def tiny_model(seed: int = 0, dtype: torch.dtype = torch.float32) -> Decoder:
    """Return the model; its weights are drawn layer by layer, norms after the rest."""
    generator = torch.Generator().manual_seed(seed)
    weights = {}
    order = sorted(shapes(CONFIG).items(), key=lambda item: (item[0].split(".")[:3], "norm" in item[0]))
    for name, shape in order:
        noise = torch.randn(shape, generator=generator)
        weights[name] = 1 + 0.1 * noise if "norm" in name else noise if "embed" in name else 0.4 * noise
    return Decoder(CONFIG, {name: value.to(dtype) for name, value in weights.items()})


def tiny_adapter(model: Decoder) -> AntiPaSTO:
    weights = {name: model.weights[f"{name}.weight"] for name in model.linears}
    svd = {}
    for name, W in weights.items():
        U, _, Vh = decompose(W)
        svd[name] = (U, Vh)
    return AntiPaSTO(weights, svd)


def tiny_samples(n: int, seed: int = 0) -> list[Sample]:
    generator = torch.Generator().manual_seed(seed)

    def tokens(low: int, high: int) -> list[int]:
        size = int(torch.randint(low, high, (), generator=generator))
        return torch.randint(0, CONFIG.vocab_size, (size,), generator=generator).tolist()

    return [Sample(tokens(2, 6), tokens(1, 7)) for _ in range(n)]


def random_theta(adapter, scale: float = 0.05, seed: int = 1):
    generator = torch.Generator().manual_seed(seed)
    return {name: scale * torch.randn(size, generator=generator) for name, size in adapter.sizes.items()}
