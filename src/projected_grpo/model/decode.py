"""Decoding: one token of every row at a time, over a key-value cache that rows share as far as they are alike.

The layer's arithmetic is that of `decoder`, with the weights of a layer joined; `sampler` drives it on the CPU,
`graphs` as CUDA graphs.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from projected_grpo.model.architecture import PARTS
from projected_grpo.model.batch import Batch
from projected_grpo.model.decoder import Decoder
from projected_grpo.model.kernels import turn

# The cache is packed anew when that leaves at most this share of its slots: packing copies, idle slots cost
# attention.
REPACK = 0.75


def draw(logits: Tensor, u: Tensor, source: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Inverse-CDF sampling: logits `[n, vocabulary]`, u `[rows]` fp64 -> tokens `[rows]`, their log-probabilities.

    source: which of the logits each row draws from; None: its own. The cumulative sum is taken in fp64, so a token
    is never drawn whose probability in it is zero.
    """
    top = logits.amax(-1, keepdim=True)
    cdf = (logits - top).exp_().cumsum(-1, dtype=torch.float64)
    if source is not None:
        logits, top, cdf = (x.index_select(0, source) for x in (logits, top, cdf))
    total = cdf[:, -1:]
    token = torch.searchsorted(cdf, u[:, None] * total, right=True).clamp_(max=logits.shape[-1] - 1)
    logprob = (logits.gather(1, token) - top).double() - total.log()
    return token[:, 0], logprob[:, 0].to(logits.dtype)


class Layer:
    """One layer's weights joined for decoding, where many small products cost more than their arithmetic."""

    def __init__(self, model: Decoder, i: int):
        c = model.config

        def weight(name: str) -> Tensor:
            return model.weights[f"model.layers.{i}.{name}.weight"]

        def bias(*parts: str) -> Tensor | None:
            named = [model.weights[f"model.layers.{i}.{part}.bias"] for part in parts if part in c.biased]
            return torch.cat(named) if named else None

        self.qkv = torch.cat([weight(f"self_attn.{p}_proj") for p in "qkv"])
        self.gate_up = torch.cat([weight("mlp.gate_proj"), weight("mlp.up_proj")])
        self.qkv_bias, self.out_bias = bias(*PARTS[:3]), bias(PARTS[3])
        self.gate_up_bias, self.down_bias = bias(*PARTS[4:6]), bias(PARTS[6])
        self.out, self.down = weight("self_attn.o_proj"), weight("mlp.down_proj")
        self.input_norm = Norm(weight("input_layernorm"), c.rms_norm_eps)
        self.post_norm = Norm(weight("post_attention_layernorm"), c.rms_norm_eps)
        # one norm for all heads; the queries' carries the scale of the attention scores
        ones = model.embedding.new_ones(c.head_dim)
        q, k = (weight(f"self_attn.{p}_norm") if c.family.qk_norm else ones for p in "qk")
        q = q.expand(c.num_attention_heads, -1) * c.head_dim**-0.5
        both = torch.cat([q, k.expand(c.num_key_value_heads, -1)])
        self.qk_norm = Norm(both, c.rms_norm_eps) if c.family.qk_norm else both.mul


class Norm:
    """RMSNorm over the last dimension in few kernels: x / rms(x) = x / hypot(|x|, (d eps)^1/2) * d^1/2."""

    def __init__(self, weight: Tensor, eps: float):
        d = weight.shape[-1]
        self.weight, self.eps = weight, eps
        if weight.dtype != torch.bfloat16:
            self.weight, self.least = weight * d**0.5, torch.full((), (d * eps) ** 0.5).to(weight)

    def __call__(self, x: Tensor) -> Tensor:
        if x.dtype == torch.bfloat16:  # torch's keeps the statistics in fp32
            return F.rms_norm(x, x.shape[-1:], None, self.eps).mul_(self.weight)
        return (x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).hypot_(self.least)).mul_(self.weight)


class Cache:
    """Keys and values of a decode batch laid out as slots `[prompts, groups]`: prompts' shared, slots' own.

    Per layer: `pk [P, KV, D, Lp]`, `pv [P, KV, Lp, D]`, `k` and `v` `[P, KV, G, max_new, D]`; `slots` are the live
    ones, prompt by prompt. At first all are.
    """

    def __init__(self, model: Decoder, prompts: int, groups: int, max_new: int):
        c = model.config
        self.model = model
        self.heads, self.kv, self.dim = c.num_attention_heads, c.num_key_value_heads, c.head_dim
        self.rep, self.max_new, self.step = self.heads // self.kv, max_new, 0
        self.P, self.G = prompts, groups
        shape = (prompts, self.kv, groups, max_new, self.dim)
        layers = range(c.num_hidden_layers)
        self.layers = [Layer(model, i) for i in layers]
        self.pk: list[Tensor] = [torch.empty(0) for _ in layers]
        self.pv: list[Tensor] = [torch.empty(0) for _ in layers]
        self.k = [torch.zeros(shape, device=model.device, dtype=model.dtype) for _ in layers]
        self.v = [torch.zeros(shape, device=model.device, dtype=model.dtype) for _ in layers]
        self.mask: Tensor | None = None  # [P * KV, 1, Lp], additive, where prompts differ in length
        self.own_mask: Tensor | None = None  # [seen], additive, where own positions ahead must be hidden
        self.longest = max_new
        self.slots = torch.arange(prompts * groups, device=model.device)

    def prefill(self, prompts: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Runs the prompts; the last hidden state `[P, d]` and the length `[P]` of each."""
        device, lengths = self.model.device, torch.tensor([len(prompt) for prompt in prompts])
        batch = Batch([(prompt, [0]) for prompt in prompts]).to(
            device
        )  # of which the token after it is asked
        width = int(lengths.max())
        nodes = torch.zeros(len(prompts), width, dtype=torch.long)
        for row, path in zip(nodes, batch.paths, strict=True):
            row[: len(path)] = torch.from_numpy(path)
        nodes = nodes.flatten().to(device)
        inside = batch.attention(self.model.dtype)

        def attend(i: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            rows_k, rows_v = (x.index_select(0, nodes).view(self.P, width, *x.shape[1:]) for x in (k, v))
            self.pk[i] = rows_k.permute(0, 2, 3, 1).contiguous()
            self.pv[i] = rows_v.transpose(1, 2).contiguous()
            return inside(i, q, k, v)

        if bool((lengths != width).any()):
            self.mask = self.prompt_mask(lengths.to(device), width)
        self.longest = width + self.max_new
        x = self.model.hidden(batch, attend=attend)
        return x.index_select(0, batch.source[batch.picks]), lengths.to(device)

    def prompt_mask(self, lengths: Tensor, width: int) -> Tensor:
        """`[P * KV, 1, width]`: -inf behind each prompt's end."""
        hidden = torch.arange(width, device=lengths.device) >= lengths[:, None]
        mask = torch.zeros(hidden.shape, dtype=self.model.dtype, device=lengths.device)
        mask.masked_fill_(hidden, -torch.inf)
        return mask[:, None].expand(-1, self.kv, -1).reshape(-1, 1, width)

    def decode(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Runs one token in every live slot: tokens, positions `[live]` -> hidden `[live, d]`."""
        n = self.P * self.G
        full = len(self.slots) == n and bool((self.slots == torch.arange(n, device=tokens.device)).all())
        rope = self.model.rope(positions, self.longest)
        x = self.forward(tokens, rope, None if full else self.slots, self.step + 1)
        self.step += 1
        return x

    def forward(self, tokens: Tensor, rope: tuple[Tensor, Tensor], slots: Tensor | None, seen: int) -> Tensor:
        """The layers, on the first `seen` own positions; slots: which are live, None: all, in order."""
        P, G, KV, D = self.P, self.G, self.kv, self.dim
        split = self.heads + self.kv
        x = F.embedding(tokens, self.model.embedding)
        for i, w in enumerate(self.layers):
            qkv = F.linear(w.input_norm(x), w.qkv, w.qkv_bias)
            heads = qkv.view(len(x), -1, D)
            turn(w.qk_norm(heads[:, :split]), *rope, out=heads[:, :split])
            if slots is not None:
                qkv = qkv.new_zeros(P * G, qkv.shape[1]).index_copy_(0, slots, qkv)
            q, k, v = (h.transpose(1, 2) for h in qkv.view(P, G, -1, D).split([self.heads, KV, KV], dim=2))
            self.write(i, k, v)
            q = q.reshape(P, KV, self.rep, G, D).transpose(2, 3)
            out = self._attend(i, q, seen).permute(0, 2, 1, 3, 4).reshape(P * G, -1)
            x = x + F.linear(out if slots is None else out.index_select(0, slots), w.out, w.out_bias)
            gate, up = F.linear(w.post_norm(x), w.gate_up, w.gate_up_bias).chunk(2, dim=-1)
            x = x + F.linear(F.silu(gate).mul_(up), w.down, w.down_bias)
        return x

    def write(self, i: int, k: Tensor, v: Tensor) -> None:
        """Stores keys and values `[P, KV, G, D]` of the current position."""
        self.k[i][:, :, :, self.step], self.v[i][:, :, :, self.step] = k, v

    def _attend(self, i: int, q: Tensor, seen: int) -> Tensor:
        """q `[P, KV, G, rep, D]`, scaled, on the prompt and the first `seen` own positions -> as q."""
        P, G, KV, D, rep = self.P, self.G, self.kv, self.dim, self.rep
        shared, own = q.reshape(P * KV, G * rep, D), q.reshape(P * KV * G, rep, D)
        on_prompt = torch.bmm(shared, self.pk[i].view(P * KV, D, -1))
        if self.mask is not None:
            on_prompt += self.mask
        on_own = torch.bmm(own, self.k[i].view(P * KV * G, -1, D)[:, :seen].transpose(1, 2))
        if self.own_mask is not None:
            on_own += self.own_mask
        width = on_prompt.shape[-1]
        scores = torch.cat(
            [on_prompt.view(P * KV, G * rep, width), on_own.view(P * KV, G * rep, seen)], dim=-1
        )
        if scores.dtype == torch.bfloat16:
            p = torch.softmax(scores, dim=-1, dtype=torch.float32).to(scores.dtype)
        else:
            p = torch.softmax(scores, dim=-1)
        out = torch.bmm(p[..., :width], self.pv[i].view(P * KV, width, D)).view(P * KV * G, rep, D)
        out = out + torch.bmm(
            p.view(P * KV * G, rep, -1)[..., width:], self.v[i].view(P * KV * G, -1, D)[:, :seen]
        )
        return out.view(P, KV, G, rep, D)

    def follow(self, parents: Tensor) -> None:
        """Makes slots of continuations the live ones: `parents [rows]`, ascending, says which live slot each had.

        A slot with several continuations is copied: into idle slots, or, where there are too few or too many of
        those, with all others into a new layout.
        """
        old, G, seen = self.slots[parents], self.G, self.step
        alive, prompt = (old // G).unique(return_inverse=True)
        counts = prompt.bincount(minlength=len(alive))
        groups = int(counts.max())
        if groups <= G and len(alive) * groups > REPACK * self.P * G:
            first = torch.ones_like(old, dtype=torch.bool)
            first[1:] = parents[1:] != parents[:-1]
            self.slots = old.clone()
            if not bool(first.all()):
                idle = torch.ones(self.P * G, dtype=torch.bool, device=old.device)
                idle[old[first]] = False
                idle, wanted = idle.nonzero()[:, 0], old[~first] // G
                number = torch.arange(len(wanted), device=old.device) - torch.searchsorted(wanted, wanted)
                new = idle[torch.searchsorted(idle // G, wanted) + number]
                for x in (*self.k, *self.v):
                    x[wanted, :, new % G, :seen] = x[wanted, :, old[~first] % G, :seen]
                self.slots[~first] = new
            return
        number = torch.arange(len(old), device=old.device) - (counts.cumsum(0) - counts)[prompt]
        self.slots = prompt * groups + number
        column = old.new_zeros(len(alive) * groups).index_copy_(0, self.slots, old % G).view(-1, groups)
        for layers in (self.k, self.v):
            for i, x in enumerate(layers):
                layers[i] = x.new_empty(len(alive), self.kv, groups, self.max_new, self.dim)
                # [P', G', KV, ...] after the two index tensors -> [P', KV, G', ...]
                layers[i][:, :, :, :seen] = x[alive[:, None], :, column, :seen].transpose(1, 2)
        if len(alive) < self.P:
            self.pk = [x.index_select(0, alive) for x in self.pk]
            self.pv = [x.index_select(0, alive) for x in self.pv]
            if self.mask is not None:
                mask = self.mask.view(self.P, self.kv, -1).index_select(0, alive)
                self.mask = mask.view(len(alive) * self.kv, 1, -1)
        self.P, self.G = len(alive), groups
