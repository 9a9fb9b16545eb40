"""Tiny random checkpoints of every family that is run, as transformers' own classes, in float64 or float32."""

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from projected_grpo.model.architecture import Config
from projected_grpo.model.decoder import Decoder

SIZES = {
    "vocab_size": 61, "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 4096, "initializer_range": 0.3, "tie_word_embeddings": True,
    "rope_parameters": {"rope_type": "default", "rope_theta": 500.0}, "attn_implementation": "sdpa",
    "bos_token_id": None, "eos_token_id": None, "pad_token_id": None,
}  # fmt: skip
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}  # fmt: skip
VARIANTS = {  # name -> (model_type, what its config has besides); heads of 8 and of another size than width / heads
    "llama": ("llama", {}),
    "llama-3": ("llama", {"rope_parameters": LLAMA3, "tie_word_embeddings": False}),
    "llama-linear": (
        "llama",
        {"rope_parameters": {"rope_type": "linear", "rope_theta": 500.0, "factor": 4.0}},
    ),
    "llama-biased": ("llama", {"attention_bias": True, "mlp_bias": True, "head_dim": 12}),
    "mistral": ("mistral", {"sliding_window": 2048, "head_dim": 12}),
    "qwen2": ("qwen2", {}),
    "qwen3": ("qwen3", {"head_dim": 12}),
    "qwen3-biased": ("qwen3", {"head_dim": 8, "attention_bias": True, "tie_word_embeddings": False}),
}


class ExactNorm(torch.nn.Module):
    """transformers' RMSNorm in the input's own precision: the original rounds float64 to float32."""

    def __init__(self, norm):
        super().__init__()
        self.weight, self.eps = norm.weight, norm.variance_epsilon

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps)


def reference(variant, dtype=torch.float64, **other):
    """Return transformers' model of a variant; `other` goes into its config."""
    kind, own = VARIANTS[variant]
    torch.manual_seed(0)
    config = AutoConfig.for_model(kind, **(SIZES | own | other))
    model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").to(dtype).eval()
    for name, p in model.named_parameters():  # ones and zeros would hide a missing norm or bias
        if "norm" in name or name.endswith("bias"):
            p.data += 0.3 * torch.randn_like(p)
    if dtype == torch.float64:
        for name, module in list(model.named_modules()):
            if name.endswith("norm"):
                model.set_submodule(name, ExactNorm(module))
    return model


def ours(model, grad=False):
    """Return the decoder on a transformers model's weights."""
    weights = {n: p.detach().clone().requires_grad_(grad) for n, p in model.named_parameters()}
    return Decoder(Config.from_dict(model.config.to_dict()), weights)


def reference_logprobs(model, rows, weights=None):
    """Return the log-probs of the rows' completion tokens by a transformers model; weights: in place of its own."""
    found = []
    for prompt, completion in rows:
        ids = torch.tensor([prompt + completion])
        call = model if weights is None else lambda ids: torch.func.functional_call(model, weights, (ids,))
        logits = call(ids).logits[0]
        logp = (logits if logits.dtype == torch.float64 else logits.float()).log_softmax(-1)
        at = torch.arange(len(prompt) - 1, ids.shape[1] - 1)
        found.append(logp[at, ids[0, at + 1]])
    return torch.cat(found)
