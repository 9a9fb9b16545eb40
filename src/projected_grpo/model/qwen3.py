"""Qwen3 as plain functions over a dict of weights with the checkpoint's own names.

Grouped-query attention, RMS-normed queries and keys, rotary positions, SwiGLU, tied or untied embeddings: the
architecture of `transformers.Qwen3ForCausalLM` (the tests hold the two together), without modules, so that
merged weights are swapped in for free and every adapted Linear passes through one seam, `linear(name, x, W)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint as recompute

from projected_grpo.errors import UserError
from projected_grpo.model.batch import Batch
from projected_grpo.model.kernels import linear as wide_linear
from projected_grpo.model.kernels import rms_norm, rotate, token_logprobs
from projected_grpo.model.tiles import Attend

Linear = Callable[[str, Tensor, Tensor], Tensor]
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
        self,
        i: int,
        x: Tensor,
        rope: tuple[Tensor, Tensor],
        attend: Attend,
        linear: Linear = plain_linear,
        asking: Tensor | None = None,
    ) -> Tensor:
        """One block, `x [nodes, d]` -> the same; only `attend(i, q, k, v)` mixes across nodes.

        asking: the nodes whose output is wanted, `[asking, d]`; None: all.
        """
        c, at = self.config, f"model.layers.{i}."

        def apply(part: str, x: Tensor) -> Tensor:
            return linear(at + part, x, self.weights[f"{at}{part}.weight"])

        def heads(part: str, h: Tensor, n: int) -> Tensor:
            return apply(f"self_attn.{part}_proj", h).view(-1, n, c.head_dim)

        h = self.norm(at + "input_layernorm", x)
        at_query, h_query = rope, h
        if asking is not None:
            x, h_query, *at_query = (t.index_select(0, asking) for t in (x, h, *rope))
        q = heads("q", h_query, c.num_attention_heads)
        k, v = heads("k", h, c.num_key_value_heads), heads("v", h, c.num_key_value_heads)
        q = rotate(self.norm(at + "self_attn.q_norm", q), *at_query)
        k = rotate(self.norm(at + "self_attn.k_norm", k), *rope)
        x = x + apply("self_attn.o_proj", attend(i, q, k, v).reshape(len(x), -1))
        h = self.norm(at + "post_attention_layernorm", x)
        return x + apply("mlp.down_proj", F.silu(apply("mlp.gate_proj", h)) * apply("mlp.up_proj", h))

    def hidden(
        self,
        batch: Batch,
        linear: Linear = plain_linear,
        checkpoint: bool = False,
        residual: Residual | None = None,
        layers: int | None = None,
        attend: Attend | None = None,
    ) -> Tensor:
        """Last hidden states `[predictors, d]` of what predicts in a batch, not normed yet.

        checkpoint: recompute layers in backward; residual: what is done to the stream after each layer; layers: stop
        after so many, with all nodes' states `[nodes, d]`; attend: in place of the batch's own.
        """
        rope = self.rope(batch.positions, batch.longest)
        attend = attend or batch.attention(self.dtype)
        x = F.embedding(batch.tokens, self.embedding)
        n = self.config.num_hidden_layers
        for i in range(n if layers is None else layers):
            asking = batch.predictors if layers is None and i == n - 1 else None
            if checkpoint:
                x = recompute(self.layer, i, x, rope, attend, linear, asking, use_reentrant=False)
            else:
                x = self.layer(i, x, rope, attend, linear, asking)
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
        checkpoint: bool | None = None,
        residual: Residual | None = None,
    ) -> Tensor:
        """Log-probability of each completion token given what precedes it, fp32, row after row.

        `linear` is called for every adapted Linear; `checkpoint` trades a second forward for the layers'
        activations, None: where they would not fit; `residual(i, x)` replaces the residual stream after layer i.
        """
        batch = batch.to(self.device)
        if len(batch.targets) == 0:
            return torch.zeros(0, device=self.device)
        if checkpoint is None:
            checkpoint = self.activation_bytes(len(batch.tokens)) > free_bytes(self.device) / 2
        x = self.norm("model.norm", self.hidden(batch, linear or plain_linear, checkpoint, residual))
        chunk = max(1, HEAD_ELEMENTS[x.device.type] // self.config.vocab_size)
        found = token_logprobs(x, self.head, batch.targets, batch.source, batch.offsets, chunk)
        return found.index_select(0, batch.picks)

    def activation_bytes(self, nodes: int) -> int:
        """About what the layers keep of so many nodes for a backward pass."""
        c = self.config
        heads = (2 * c.num_attention_heads + 2 * c.num_key_value_heads) * c.head_dim
        wide = 5 * c.hidden_size + 2 * heads + 4 * c.intermediate_size
        return nodes * c.num_hidden_layers * wide * self.embedding.element_size()

    @torch.no_grad()
    def residuals(self, batch: Batch, layer: int) -> Tensor:
        """Residual stream after `layer` at each completion token, `[completion tokens, d]`, row after row.

        Later layers are not computed.
        """
        whole = Batch(batch.rows, whole=True).to(self.device)
        x = self.hidden(whole, layers=layer + 1)
        nodes = [path[len(prompt) :] for path, (prompt, _) in zip(whole.paths, whole.rows, strict=True)]
        return x.index_select(0, torch.from_numpy(np.concatenate(nodes)).to(self.device))


def free_bytes(device: torch.device) -> float:
    """Memory that a GPU has left; a CPU's is not asked for."""
    if device.type != "cuda":
        return float("inf")
    held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return torch.cuda.mem_get_info(device)[0] + held
