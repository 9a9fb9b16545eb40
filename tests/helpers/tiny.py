"""A random Qwen3 of a few thousand parameters, and random samples, for tests of the method."""

import torch

from projected_grpo.method.adapter import AntiPaSTO, decompose
from projected_grpo.method.gradients import Sample
from projected_grpo.model.architecture import Config
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
    generator = torch.Generator().manual_seed(seed)
    c = CONFIG
    q, kv = c.num_attention_heads * c.head_dim, c.num_key_value_heads * c.head_dim
    shapes = {"q_proj": (q, c.hidden_size), "k_proj": (kv, c.hidden_size), "v_proj": (kv, c.hidden_size)}
    shapes["o_proj"] = (c.hidden_size, q)
    mlp = {"gate_proj": (c.intermediate_size, c.hidden_size), "up_proj": (c.intermediate_size, c.hidden_size)}
    mlp["down_proj"] = (c.hidden_size, c.intermediate_size)
    weights = {"model.embed_tokens.weight": torch.randn(c.vocab_size, c.hidden_size, generator=generator)}
    for i in range(c.num_hidden_layers):
        at = f"model.layers.{i}."
        for part, named in (("self_attn.", shapes), ("mlp.", mlp)):
            for name, shape in named.items():
                weights[f"{at}{part}{name}.weight"] = 0.4 * torch.randn(shape, generator=generator)
        for norm, size in (("input_layernorm", c.hidden_size), ("post_attention_layernorm", c.hidden_size)):
            weights[f"{at}{norm}.weight"] = 1 + 0.1 * torch.randn(size, generator=generator)
        for norm in ("self_attn.q_norm", "self_attn.k_norm"):
            weights[f"{at}{norm}.weight"] = 1 + 0.1 * torch.randn(c.head_dim, generator=generator)
    weights["model.norm.weight"] = 1 + 0.1 * torch.randn(c.hidden_size, generator=generator)
    return Decoder(c, {name: value.to(dtype) for name, value in weights.items()})


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
