"""Qwen3 as plain functions over a dict of weights with the checkpoint's own names.

Grouped-query attention, RMS-normed queries and keys, rotary positions, SwiGLU, tied or untied embeddings: the
architecture of `transformers.Qwen3ForCausalLM` (the tests hold the two together), without modules, so that
merged weights are swapped in for free and every adapted Linear passes through one seam, `linear(name, x, W)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint as recompute

from projected_grpo.errors import UserError
from projected_grpo.model.batch import Batch
from projected_grpo.model.kernels import linear as wide_linear
from projected_grpo.model.kernels import rms_norm, rotate, token_logprobs

Linear = Callable[[str, Tensor, Tensor], Tensor]
Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
Residual = Callable[
    [int, Tensor], Tensor
]  # (layer, x [tokens, d]) -> x as the next layer sees it; token by token

PARTS = (
    "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
    "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",
)  # fmt: skip
# fp32 logits that exist at once: on the CPU what its caches hold (4 MB), on a GPU what keeps it busy (1 GB).
HEAD_ELEMENTS = {"cpu": 1 << 20, "cuda": 1 << 28}


@dataclass(frozen=True)
class Config:
    """The numbers of a `config.json` that the forward needs, under its names."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    rms_norm_eps: float
    rope_theta: float
    tie_word_embeddings: bool

    @classmethod
    def from_dict(cls, raw: Mapping, source: str = "config.json") -> Config:
        """From a parsed `config.json`. Raises UserError for another architecture or variant."""
        rope = raw.get("rope_parameters") or raw.get("rope_scaling") or {}
        unsupported = {
            "model_type": raw.get("model_type") != "qwen3",
            "attention_bias": bool(raw.get("attention_bias")),
            "use_sliding_window": bool(raw.get("use_sliding_window")),
            "hidden_act": raw.get("hidden_act", "silu") != "silu",
            "rope_scaling": rope.get("rope_type", rope.get("type", "default")) != "default",
        }
        for key, bad in unsupported.items():
            if bad:
                raise UserError(f"{source}: {key} = {raw.get(key)!r}: only plain Qwen3 checkpoints are run")
        theta = rope.get("rope_theta", raw.get("rope_theta"))
        values = {**raw, "rope_theta": theta, "tie_word_embeddings": raw.get("tie_word_embeddings", False)}
        missing = [f for f in cls.__dataclass_fields__ if values.get(f) is None]
        if missing:
            raise UserError(f"{source}: no {', '.join(missing)}")
        return cls(**{f: values[f] for f in cls.__dataclass_fields__})


def plain_linear(name: str, x: Tensor, W: Tensor) -> Tensor:
    """The seam's default: no adapter, nothing recorded."""
    return wide_linear(x, W)


class Qwen3:
    """A model: a `Config` and a dict of tensors by checkpoint name (`model.embed_tokens.weight`, ...).

    `linears` lists the adapted Linears in forward order, 7 a layer, without `.weight`.
    """

    def __init__(self, config: Config, weights: Mapping[str, Tensor]):
        self.config = config
        self.weights = dict(weights)
        self.linears = [f"model.layers.{i}.{p}" for i in range(config.num_hidden_layers) for p in PARTS]
        self.embedding = self.weights["model.embed_tokens.weight"]
        self.head = self.embedding if config.tie_word_embeddings else self.weights["lm_head.weight"]
        self._rope: tuple[Tensor, Tensor] | None = None

    @property
    def device(self) -> torch.device:
        return self.embedding.device

    @property
    def dtype(self) -> torch.dtype:
        return self.embedding.dtype

    def replace(self, new: Mapping[str, Tensor]) -> Qwen3:
        """The model with other weights for the named Linears; everything else is shared, nothing copied."""
        unknown = set(new) - set(self.linears)
        if unknown:
            raise KeyError(f"no such Linear: {sorted(unknown)}")
        model = Qwen3(self.config, {**self.weights, **{f"{n}.weight": W for n, W in new.items()}})
        model._rope = self._rope
        return model

    def rope(self, positions: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        """cos and signed sin `[tokens, 1, head_dim]` of positions below `longest`; angles in fp32."""
        if self._rope is None or self._rope[0].shape[0] < longest:
            half = torch.arange(0, self.config.head_dim, 2, dtype=torch.float32, device=self.device)
            inverse = 1.0 / self.config.rope_theta ** (half / self.config.head_dim)
            size = max(longest, 256)
            angles = torch.arange(size, dtype=torch.float32, device=self.device)[:, None, None] * inverse
            cos, sin = angles.cos().to(self.dtype), angles.sin().to(self.dtype)
            self._rope = (torch.cat((cos, cos), dim=-1), torch.cat((-sin, sin), dim=-1))
        cos, sin = self._rope
        return cos.index_select(0, positions), sin.index_select(0, positions)

    def norm(self, name: str, x: Tensor) -> Tensor:
        return rms_norm(x, self.weights[f"{name}.weight"], self.config.rms_norm_eps)

    def layer(
        self, i: int, x: Tensor, rope: tuple[Tensor, Tensor], attend: Attend, linear: Linear = plain_linear
    ) -> Tensor:
        """One block, `x [tokens, d]` -> the same; only `attend(i, q, k, v)` mixes across tokens."""
        c, at = self.config, f"model.layers.{i}."

        def apply(part: str, x: Tensor) -> Tensor:
            return linear(at + part, x, self.weights[f"{at}{part}.weight"])

        h = self.norm(at + "input_layernorm", x)
        q = apply("self_attn.q_proj", h).view(-1, c.num_attention_heads, c.head_dim)
        k = apply("self_attn.k_proj", h).view(-1, c.num_key_value_heads, c.head_dim)
        v = apply("self_attn.v_proj", h).view(-1, c.num_key_value_heads, c.head_dim)
        q = rotate(self.norm(at + "self_attn.q_norm", q), *rope)
        k = rotate(self.norm(at + "self_attn.k_norm", k), *rope)
        x = x + apply("self_attn.o_proj", attend(i, q, k, v).reshape(len(x), -1))
        h = self.norm(at + "post_attention_layernorm", x)
        return x + apply("mlp.down_proj", F.silu(apply("mlp.gate_proj", h)) * apply("mlp.up_proj", h))

    def hidden(
        self,
        tokens: Tensor,
        rope: tuple[Tensor, Tensor],
        attend: Attend,
        linear: Linear = plain_linear,
        checkpoint: bool = False,
        residual: Residual | None = None,
        layers: int | None = None,
    ) -> Tensor:
        """Hidden states `[tokens, d]` after all layers, or the first `layers`, not normed yet.

        checkpoint: recompute layers in backward; residual: what is done to the stream after each layer.
        """
        x = F.embedding(tokens, self.embedding)
        for i in range(self.config.num_hidden_layers if layers is None else layers):
            if checkpoint:
                x = recompute(self.layer, i, x, rope, attend, linear, use_reentrant=False)
            else:
                x = self.layer(i, x, rope, attend, linear)
            if residual is not None:
                x = residual(i, x)
        return x

    def logits(self, x: Tensor) -> Tensor:
        """fp32 logits `[tokens, vocabulary]` of last hidden states `x [tokens, d]` (fp64 stays fp64)."""
        y = F.linear(self.norm("model.norm", x), self.head)
        return y if y.dtype == torch.float64 else y.float()

    def logprobs(
        self,
        batch: Batch,
        linear: Linear | None = None,
        checkpoint: bool = False,
        residual: Residual | None = None,
    ) -> Tensor:
        """Log-probability of each completion token given what precedes it, fp32, row after row.

        `linear` is called for every adapted Linear; `checkpoint` trades a second forward for the layers'
        activations; `residual(i, x)` replaces the residual stream after layer i.
        """
        batch = batch.to(self.device)
        rope = self.rope(batch.positions, longest=_longest(batch))
        attend = batch_attention(batch, self.dtype)
        x = self.hidden(batch.tokens, rope, attend, linear or plain_linear, checkpoint, residual)
        x = x.index_select(0, batch.predictors)
        if self.head.requires_grad:
            return -F.cross_entropy(self.logits(x), batch.targets, reduction="none")
        chunk = max(1, HEAD_ELEMENTS[x.device.type] // self.config.vocab_size)
        return token_logprobs(self.norm("model.norm", x), self.head, batch.targets, chunk)

    @torch.no_grad()
    def residuals(self, batch: Batch, layer: int) -> Tensor:
        """Residual stream after `layer` at each completion token, `[completion tokens, d]`, row after row.

        Later layers are not computed.
        """
        batch = batch.to(self.device)
        rope = self.rope(batch.positions, longest=_longest(batch))
        x = self.hidden(batch.tokens, rope, batch_attention(batch, self.dtype), layers=layer + 1)
        return x[batch.n_prompt_tokens :]


def _longest(batch: Batch) -> int:
    return batch.prompt.width + batch.completion.width


def prompt_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention in right-padded prompts: q `[P, L, H, D]`, k, v `[P, L, KV, D]` -> `[P, L, H, D]`.

    A causal query never sees the padding behind it, so no mask is needed.
    """
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(1, 2)


def batch_attention(batch: Batch, dtype: torch.dtype) -> Attend:
    """Attention of a packed batch: prompts see themselves, completions their prompt and their own past."""
    P, C, unit, n = batch.prompt, batch.completion, batch.unit, batch.n_prompt_tokens
    # [rows or 1, 1, C.width, P.width + C.width]; queries behind a row's end see something and are not read
    own = torch.ones(C.width, C.width, dtype=torch.bool, device=unit.device).tril()
    seen = torch.arange(P.width, device=unit.device) < P.lengths[:, None]
    seen = seen[unit] if P.ragged else seen[:1]
    allowed = torch.cat([seen[:, None].expand(-1, C.width, -1), own.expand(len(seen), -1, -1)], dim=-1)
    mask = torch.zeros(allowed.shape, dtype=dtype, device=unit.device).masked_fill_(~allowed, -torch.inf)[
        :, None
    ]

    def attend(i: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        sizes = [n, len(q) - n]
        (qp, qc), (kp, kc), (vp, vc) = (t.split(sizes) for t in (q, k, v))
        kp, vp = P.pad(kp), P.pad(vp)
        out = P.pack(prompt_attention(P.pad(qp), kp, vp))
        if sizes[1] == 0:
            return out
        kc = torch.cat([kp.index_select(0, unit), C.pad(kc)], dim=1).transpose(1, 2)
        vc = torch.cat([vp.index_select(0, unit), C.pad(vc)], dim=1).transpose(1, 2)
        qc = C.pad(qc).transpose(1, 2)
        return torch.cat([out, C.pack(grouped_attention(qc, kc, vc, mask).transpose(1, 2))])

    return attend


def grouped_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """q `[R, H, L, D]` on k, v `[R, KV, S, D]` under an additive mask `[R or 1, 1, L, S]` -> as q."""
    mask = mask.expand(len(q), -1, -1, -1)
    if q.is_cuda:  # the memory-efficient kernel takes masks but no grouped heads
        k, v = (t.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for t in (k, v))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
