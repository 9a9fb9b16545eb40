"""Sampling at temperature 1 over the full vocabulary, many rows per prompt, with a static key-value cache.

Each prompt is prefilled once and its keys and values serve all its rows; rows that have ended leave the
decode batch. One uniform number per (row, step) decides the token through the inverse of the cumulative
distribution, so the same uniforms give the same samples however the rows are split into calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from projected_grpo.model.batch import Batch, Rectangle
from projected_grpo.model.kernels import turn
from projected_grpo.model.qwen3 import Qwen3, prompt_attention

# The cache is packed anew when that leaves at most this share of its slots: packing copies, idle slots cost
# attention.
REPACK = 0.75


@dataclass(frozen=True)
class Rollout:
    """One sampled completion: token ids (with the end token where it was drawn), their log-probabilities."""

    tokens: list[int]
    logprobs: list[float]


def uniforms(
    seed: int,
    stream: int,
    step: int,
    prompts: int | Sequence[int],
    samples: int | Sequence[int],
    max_new: int,
) -> np.ndarray:
    """Uniform numbers in [0, 1), `[prompts * samples, max_new]` float64, prompt by prompt.

    A number depends on (seed, stream, step, prompt index, sample index, position) alone: a resumed run,
    another split into calls, another number of samples or a longer `max_new` draw the same ones. An integer n
    stands for the indices 0 ... n-1.
    """
    prompts = range(prompts) if isinstance(prompts, int) else prompts
    samples = range(samples) if isinstance(samples, int) else samples
    key = np.array([seed, stream], dtype=np.uint64)
    rows = []
    for p in prompts:
        for s in samples:
            # Philox counts up in the first word; 2^64 blocks keep the rows apart.
            counter = np.array([0, s, p, step], dtype=np.uint64)
            rows.append(np.random.Generator(np.random.Philox(key=key, counter=counter)).random(max_new))
    return np.stack(rows) if rows else np.zeros((0, max_new))


def draw(logits: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """Inverse-CDF sampling: logits `[rows, vocabulary]`, u `[rows]` fp64 -> tokens, their log-probabilities.

    The cumulative sum is taken in fp64, so a token is never drawn whose probability in it is zero.
    """
    top = logits.amax(-1, keepdim=True)
    cdf = (logits - top).exp_().cumsum(-1, dtype=torch.float64)
    total = cdf[:, -1:]
    token = torch.searchsorted(cdf, u[:, None] * total, right=True).clamp_(max=logits.shape[-1] - 1)
    logprob = (logits.gather(1, token) - top).double() - total.log()
    return token[:, 0], logprob[:, 0].to(logits.dtype)


class _Layer:
    """One layer's weights joined for decoding, where many small products cost more than their arithmetic."""

    def __init__(self, model: Qwen3, i: int):
        c = model.config

        def weight(name: str) -> Tensor:
            return model.weights[f"model.layers.{i}.{name}.weight"]

        self.qkv = torch.cat([weight(f"self_attn.{p}_proj") for p in "qkv"])
        self.gate_up = torch.cat([weight("mlp.gate_proj"), weight("mlp.up_proj")])
        self.out, self.down = weight("self_attn.o_proj"), weight("mlp.down_proj")
        # one norm for all heads; the queries' carries the scale of the attention scores
        q = weight("self_attn.q_norm").expand(c.num_attention_heads, -1) * c.head_dim**-0.5
        k = weight("self_attn.k_norm").expand(c.num_key_value_heads, -1)
        self.input_norm = _Norm(weight("input_layernorm"), c.rms_norm_eps)
        self.post_norm = _Norm(weight("post_attention_layernorm"), c.rms_norm_eps)
        self.qk_norm = _Norm(torch.cat([q, k]), c.rms_norm_eps)


class _Norm:
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


class _Cache:
    """Keys and values of a decode batch laid out as slots `[prompts, groups]`: prompts' shared, rows' own.

    Per layer: `pk [P, KV, D, Lp]`, `pv [P, KV, Lp, D]`, `k` and `v` `[P, KV, G, max_new, D]`.
    """

    def __init__(self, model: Qwen3, prompts: Sequence[Sequence[int]], groups: int, max_new: int):
        c = model.config
        self.model = model
        self.heads, self.kv, self.dim = c.num_attention_heads, c.num_key_value_heads, c.head_dim
        self.rep, self.max_new, self.step = self.heads // self.kv, max_new, 0
        self.P, self.G = len(prompts), groups
        self.batch = Batch(prompts, [], []).to(model.device)
        self.pk: list[Tensor] = []
        self.pv: list[Tensor] = []
        shape = (self.P, self.kv, groups)
        empty = {"device": model.device, "dtype": model.dtype}
        layers = range(c.num_hidden_layers)
        self.layers = [_Layer(model, i) for i in layers]
        self.k = [torch.empty(*shape, max_new, self.dim, **empty) for _ in layers]
        self.v = [torch.empty(*shape, max_new, self.dim, **empty) for _ in layers]
        area = self.batch.prompt
        self.mask = None
        if area.ragged:
            hidden = torch.arange(area.width, device=model.device) >= area.lengths[:, None]
            mask = torch.zeros(hidden.shape, **empty).masked_fill_(hidden, -torch.inf)
            self.mask = mask[:, None].expand(-1, self.kv, -1).reshape(self.P * self.kv, 1, -1)

    def prefill(self) -> Tensor:
        """Runs the prompts; the last hidden state of each, `[P, d]`."""
        area = self.batch.prompt

        def attend(i: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            k, v = area.pad(k), area.pad(v)
            self.pk.append(k.permute(0, 2, 3, 1).contiguous())
            self.pv.append(v.transpose(1, 2).contiguous())
            return area.pack(prompt_attention(area.pad(q), k, v))

        rope = self.model.rope(self.batch.positions, longest=area.width + self.max_new)
        x = self.model.hidden(self.batch.tokens, rope, attend)
        return x.index_select(0, area.lengths.cumsum(0) - 1)

    def decode(self, tokens: Tensor, positions: Tensor, slots: Tensor) -> Tensor:
        """Runs one token of every live row: tokens, positions, slots `[rows]` -> hidden `[rows, d]`."""
        P, G, KV, D, t = self.P, self.G, self.kv, self.dim, self.step
        full, split = len(slots) == P * G, self.heads + self.kv
        cos, sin = self.model.rope(positions, longest=self.batch.prompt.width + self.max_new)
        x = F.embedding(tokens, self.model.embedding)
        for i, w in enumerate(self.layers):
            qkv = F.linear(w.input_norm(x), w.qkv)
            heads = qkv.view(len(x), -1, D)
            turn(w.qk_norm(heads[:, :split]), cos, sin, out=heads[:, :split])
            if not full:
                qkv = qkv.new_zeros(P * G, qkv.shape[1]).index_copy_(0, slots, qkv)
            q, k, v = (h.transpose(1, 2) for h in qkv.view(P, G, -1, D).split([self.heads, KV, KV], dim=2))
            self.k[i][:, :, :, t], self.v[i][:, :, :, t] = k, v
            q = q.reshape(P, KV, self.rep, G, D).transpose(2, 3)
            out = self._attend(i, q, t + 1).permute(0, 2, 1, 3, 4).reshape(P * G, -1)
            x = x + F.linear(out if full else out.index_select(0, slots), w.out)
            gate, up = F.linear(w.post_norm(x), w.gate_up).chunk(2, dim=-1)
            x = x + F.linear(F.silu(gate).mul_(up), w.down)
        self.step += 1
        return x

    def _attend(self, i: int, q: Tensor, seen: int) -> Tensor:
        """q `[P, KV, G, rep, D]`, scaled, on the prompt and the first `seen` own positions -> as q."""
        P, G, KV, D, rep = self.P, self.G, self.kv, self.dim, self.rep
        shared, own = q.reshape(P * KV, G * rep, D), q.reshape(P * KV * G, rep, D)
        on_prompt = torch.bmm(shared, self.pk[i].view(P * KV, D, -1))
        if self.mask is not None:
            on_prompt += self.mask
        on_own = torch.bmm(own, self.k[i].view(P * KV * G, -1, D)[:, :seen].transpose(1, 2))
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

    def repack(self, slots: Tensor) -> Tensor:
        """Keeps only prompts with live rows and as many slots each as the fullest needs; the new slots.

        Does nothing unless that frees a fair share of the slots.
        """
        prompt = slots // self.G
        alive, prompt = prompt.unique(return_inverse=True)
        counts = prompt.bincount(minlength=len(alive))
        groups = int(counts.max())
        if len(alive) * groups > REPACK * self.P * self.G:
            return slots
        area = Rectangle(counts.tolist()).to(slots.device)
        column = area.pad(slots % self.G)
        for layers in (self.k, self.v):
            for i, old in enumerate(layers):
                # [P', G', KV, ...] after the two index tensors -> [P', KV, G', ...]
                layers[i] = old[alive[:, None], :, column].transpose(1, 2).contiguous()
        self.pk = [x.index_select(0, alive) for x in self.pk]
        self.pv = [x.index_select(0, alive) for x in self.pv]
        if self.mask is not None:
            mask = self.mask.view(self.P, self.kv, -1).index_select(0, alive)
            self.mask = mask.view(len(alive) * self.kv, 1, -1)
        self.P, self.G = len(alive), groups
        return area.slot


@torch.no_grad()
def sample(
    model: Qwen3,
    prompts: Sequence[Sequence[int]],
    rows_per_prompt: int,
    uniforms: np.ndarray | Tensor,
    max_new: int,
    end: int,
) -> list[Rollout]:
    """Samples `rows_per_prompt` completions of every prompt; rows come prompt by prompt.

    A row stops at the token `end` (kept) or after `max_new` tokens. uniforms `[rows, max_new]`; the recorded
    log-probabilities are those of the distribution that was sampled. Raises ValueError on a shape mismatch.
    """
    rows = len(prompts) * rows_per_prompt
    if tuple(uniforms.shape) != (rows, max_new):
        raise ValueError(f"uniforms are {tuple(uniforms.shape)}, expected {(rows, max_new)}")
    if rows == 0 or max_new == 0:
        return [Rollout([], []) for _ in range(rows)]
    device = model.device
    u = torch.as_tensor(uniforms, dtype=torch.float64).to(device)
    tokens = torch.zeros(rows, max_new, dtype=torch.long, device=device)
    logprobs = torch.zeros(rows, max_new, dtype=torch.float64, device=device)
    lengths = torch.full((rows,), max_new, device=device)

    cache = _Cache(model, prompts, rows_per_prompt, max_new)
    logits = model.logits(cache.prefill()).repeat_interleave(rows_per_prompt, dim=0)
    slots = row = torch.arange(rows, device=device)
    positions = cache.batch.prompt.lengths.repeat_interleave(rows_per_prompt)
    for t in range(max_new):
        new, logprob = draw(logits, u[row, t])
        tokens[row, t], logprobs[row, t] = new, logprob.double()
        live = new != end
        if not bool(live.all()):
            lengths[row[~live]] = t + 1
            row, slots, positions, new = row[live], slots[live], positions[live], new[live]
            if len(row) and t + 1 < max_new:
                slots = cache.repack(slots)
        if len(row) == 0 or t + 1 == max_new:
            break
        logits = model.logits(cache.decode(new, positions, slots))
        positions = positions + 1
    tokens, logprobs = tokens.tolist(), logprobs.tolist()
    return [Rollout(tokens[r][:n], logprobs[r][:n]) for r, n in enumerate(lengths.tolist())]
