"""A decoder as plain functions over a dict of weights with the checkpoint's own names.

Grouped-query attention, rotary positions, SwiGLU, tied or untied embeddings, with the norms and biases that a family
has (`architecture.FAMILIES`): what transformers' classes of the same name compute (the tests hold the two together),
without modules, so that merged weights are swapped in for free and every adapted Linear passes through one seam,
`linear(name, x, W)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint as recompute

from projected_grpo.errors import UserError
from projected_grpo.model.architecture import PARTS, Config
from projected_grpo.model.batch import Batch
from projected_grpo.model.kernels import linear as wide_linear
from projected_grpo.model.kernels import rms_norm, rotate, token_logprobs
from projected_grpo.model.tiles import Attend

Linear = Callable[[str, Tensor, Tensor], Tensor]
Residual = Callable[
    [int, Tensor], Tensor
]  # (layer, x [tokens, d]) -> x as the next layer sees it; token by token

# fp32 logits that exist at once: on the CPU what its caches hold (4 MB), on a GPU what keeps it busy (1 GB).
HEAD_ELEMENTS = {"cpu": 1 << 20, "cuda": 1 << 28}
HEAD_ROWS = 128  # at least, of a large vocabulary: fewer make poor use of a pass over the head's weights


def plain_linear(name: str, x: Tensor, W: Tensor) -> Tensor:
    """The seam's default: no adapter, nothing recorded."""
    return wide_linear(x, W)


class Decoder:
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

    def replace(self, new: Mapping[str, Tensor]) -> Decoder:
        """The model with other weights for the named Linears; everything else is shared, nothing copied."""
        unknown = set(new) - set(self.linears)
        if unknown:
            raise KeyError(f"no such Linear: {sorted(unknown)}")
        model = Decoder(self.config, {**self.weights, **{f"{n}.weight": W for n, W in new.items()}})
        model._rope = self._rope
        return model

    def rope(self, positions: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        """cos and signed sin `[tokens, 1, head_dim]` of positions below `longest`; angles in fp32.

        Raises UserError where `longest` is beyond the model's window, in which attention is that of all tokens.
        """
        window = self.config.sliding_window
        if window is not None and longest > window:
            raise UserError(
                f"sliding_window: {longest} tokens, allowed: {window}, within which the model is run"
            )
        if self._rope is None or self._rope[0].shape[0] < longest:
            inverse = inverse_frequencies(self.config, self.device)
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
            y = linear(at + part, x, self.weights[f"{at}{part}.weight"])
            return y + self.weights[f"{at}{part}.bias"] if part in c.biased else y

        def heads(part: str, h: Tensor, n: int) -> Tensor:
            return apply(f"self_attn.{part}_proj", h).view(-1, n, c.head_dim)

        h = self.norm(at + "input_layernorm", x)
        at_query: Sequence[Tensor]
        at_query, h_query = rope, h
        if asking is not None:
            x, h_query, *at_query = (t.index_select(0, asking) for t in (x, h, *rope))
        q = heads("q", h_query, c.num_attention_heads)
        k, v = heads("k", h, c.num_key_value_heads), heads("v", h, c.num_key_value_heads)
        if c.family.qk_norm:
            q, k = self.norm(at + "self_attn.q_norm", q), self.norm(at + "self_attn.k_norm", k)
        q, k = rotate(q, *at_query), rotate(k, *rope)
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
        chunk = max(HEAD_ROWS, HEAD_ELEMENTS[x.device.type] // self.config.vocab_size)
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


def inverse_frequencies(c: Config, device: torch.device) -> Tensor:
    """Angle a position of each pair of a head's dimensions, `[head_dim / 2]` fp32, scaled as the config says.

    `llama3` turns slow pairs slower by `factor` and leaves fast ones, with a ramp between: as
    `transformers.modeling_rope_utils` has it.
    """
    half = torch.arange(0, c.head_dim, 2, dtype=torch.float32, device=device)
    inverse = 1.0 / c.rope_theta ** (half / c.head_dim)
    scaling = c.rope_scaling
    if not scaling:
        return inverse
    slow = inverse / scaling["factor"]
    if scaling["rope_type"] == "linear":
        return slow
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    turns = scaling["original_max_position_embeddings"] * inverse / (2 * torch.pi)
    fast = ((turns - low) / (high - low)).clamp(0, 1)
    return (1 - fast) * slow + fast * inverse


def free_bytes(device: torch.device) -> float:
    """Memory that a GPU has left; a CPU's is not asked for."""
    if device.type != "cuda":
        return float("inf")
    held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return torch.cuda.mem_get_info(device)[0] + held
