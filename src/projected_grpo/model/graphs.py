"""Decoding on a GPU: the whole step of all rows as one CUDA graph over static buffers.

Decoding is bound by the weights' bandwidth there and by the launch of some thousand small kernels, so rows that
have ended stay in the batch and the launches are recorded: one graph for each stretch of own positions, replayed
for every token, prompt set and training step of the same shape. The weights of a merged model are copied into the
graphs' own buffers. Without CUDA the same step runs unrecorded (the tests hold it to `sampler.sample`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import torch
from torch import Tensor

from projected_grpo.model.decode import Cache, draw
from projected_grpo.model.decoder import Decoder

STRETCH = 128  # own positions that one graph attends over, rounded up
WIDTH = 64  # prompts are padded to a multiple of this, so that few shapes occur
CHECK = 32  # tokens between two looks at whether all rows have ended (each look waits for the GPU)


class StaticDecoder(Cache):
    """A cache, a step and its graphs for one shape: prompts x groups, prompt width, max_new."""

    def __init__(self, model: Decoder, prompts: int, groups: int, width: int, max_new: int):
        super().__init__(model, prompts, groups, max_new)
        kind: dict[str, Any]
        rows, device, kind = prompts * groups, model.device, {"device": model.device, "dtype": model.dtype}
        self.shape = (id(model.embedding), prompts, groups, width, max_new)
        self.width, self.longest = width, width + max_new
        layers = range(len(self.layers))
        self.static_pk = [torch.zeros(prompts, self.kv, self.dim, width, **kind) for _ in layers]
        self.static_pv = [torch.zeros(prompts, self.kv, width, self.dim, **kind) for _ in layers]
        self.static_mask = torch.zeros(prompts * self.kv, 1, width, **kind)
        for layer in self.layers:  # qkv and gate_up are copies already
            layer.out, layer.down = layer.out.clone(), layer.down.clone()
        self.rope_table = model.rope(torch.arange(self.longest, device=device), self.longest)
        self.at = torch.zeros(1, dtype=torch.long, device=device)
        self.positions = torch.zeros(rows, dtype=torch.long, device=device)
        self.uniforms = torch.zeros(rows, max_new, dtype=torch.float64, device=device)
        self.tokens = torch.zeros(rows, max_new, dtype=torch.long, device=device)
        self.logprobs = torch.zeros(rows, max_new, dtype=torch.float64, device=device)
        self.graphs: dict[int, torch.cuda.CUDAGraph] = {}

    def load(self, model: Decoder) -> None:
        """Takes the weights of another merge of the same base into the buffers that the graphs read."""
        for i, layer in enumerate(self.layers):
            part = {
                p: model.weights[f"{name}.weight"]
                for p, name in zip(PARTS, model.linears[7 * i :], strict=False)
            }
            torch.cat([part["q"], part["k"], part["v"]], out=layer.qkv)
            torch.cat([part["gate"], part["up"]], out=layer.gate_up)
            layer.out.copy_(part["o"])
            layer.down.copy_(part["down"])
        self.model = model

    def begin(self, prompts: Sequence[Sequence[int]], uniforms: Tensor) -> None:
        """Prefills, and draws the first token of every row."""
        last, lengths = self.prefill(prompts)
        for i in range(len(self.layers)):
            used = self.pk[i].shape[-1]
            self.static_pk[i][..., :used] = self.pk[i]
            self.static_pv[i][:, :, :used] = self.pv[i]
        self.pk, self.pv = list(self.static_pk), list(self.static_pv)
        self.static_mask.copy_(self.prompt_mask(lengths, self.width))
        self.mask, self.longest = self.static_mask, self.width + self.max_new
        self.uniforms.copy_(uniforms)
        logits = self.model.logits(last).repeat_interleave(self.G, dim=0)
        token, logprob = draw(logits, self.uniforms[:, 0])
        self.tokens.zero_()
        self.tokens[:, 0], self.logprobs[:, 0] = token, logprob.double()
        self.positions.copy_(lengths.repeat_interleave(self.G))
        self.at.zero_()

    def token(self, seen: int) -> None:
        """Runs token `at` of every row and draws the next one. Everything it touches is a static buffer."""
        hidden = torch.arange(seen, device=self.at.device) > self.at
        self.own_mask = torch.zeros(seen, dtype=self.model.dtype, device=self.at.device)
        self.own_mask.masked_fill_(hidden, -torch.inf)
        rope = tuple(table.index_select(0, self.positions) for table in self.rope_table)
        tokens = self.tokens.index_select(1, self.at)[:, 0]
        x = self.forward(tokens, rope, None, seen)  # type: ignore[arg-type]
        self.at += 1
        self.positions += 1
        u = self.uniforms.index_select(1, self.at)[:, 0]
        token, logprob = draw(self.model.logits(x), u)
        self.tokens.index_copy_(1, self.at, token[:, None])
        self.logprobs.index_copy_(1, self.at, logprob.double()[:, None])

    def write(self, i: int, k: Tensor, v: Tensor) -> None:
        self.k[i].index_copy_(3, self.at, k.unsqueeze(3))
        self.v[i].index_copy_(3, self.at, v.unsqueeze(3))

    def run(self, ends: Tensor) -> None:
        """All tokens after the first, until every row has drawn one of `ends`."""
        for t in range(self.max_new - 1):
            if t % CHECK == 0 and bool(torch.isin(self.tokens[:, : t + 1], ends).any(1).all()):
                break
            seen = min(-(-(t + 1) // STRETCH) * STRETCH, self.max_new)
            if self.tokens.is_cuda:
                self.replay(seen)
            else:
                self.token(seen)

    def replay(self, seen: int) -> None:
        if seen not in self.graphs:
            # a warm-up on a side stream, as CUDA graphs ask for; its effects are taken back
            state = [t.clone() for t in (self.at, self.positions, self.tokens, self.logprobs)]
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                self.token(seen)
            torch.cuda.current_stream().wait_stream(side)
            for buffer, before in zip(
                (self.at, self.positions, self.tokens, self.logprobs), state, strict=True
            ):
                buffer.copy_(before)
            self.graphs[seen] = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graphs[seen]):
                self.token(seen)
        self.graphs[seen].replay()


PARTS = ("q", "k", "v", "o", "gate", "up", "down")
_latest: list[StaticDecoder] = []  # the last shape's decoder; another shape replaces it


@torch.no_grad()
def sample_on_graphs(
    model: Decoder,
    prompts: Sequence[Sequence[int]],
    groups: int,
    uniforms: Tensor,
    max_new: int,
    ends: Collection[int],
    longest: int = 0,
) -> list[tuple[list[int], list[float]]]:
    """`sampler.sample` for a GPU: tokens and log-probabilities of every row, prompt by prompt."""
    width = -(-max(longest, *map(len, prompts)) // WIDTH) * WIDTH
    shape = (id(model.embedding), len(prompts), groups, width, max_new)
    if not _latest or _latest[0].shape != shape:
        _latest.clear()
        _latest.append(StaticDecoder(model, len(prompts), groups, width, max_new))
    decoder = _latest[0]
    decoder.load(model)
    decoder.begin(prompts, uniforms)
    decoder.run(torch.tensor(sorted(ends), device=model.device))
    tokens, logprobs = decoder.tokens.tolist(), decoder.logprobs.tolist()
    cut = [next((i + 1 for i, token in enumerate(row) if token in ends), max_new) for row in tokens]
    return [(t[:n], p[:n]) for t, p, n in zip(tokens, logprobs, cut, strict=True)]
