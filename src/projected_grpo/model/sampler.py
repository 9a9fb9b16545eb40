"""Sampling at temperature 1 over the full vocabulary, many rows per prompt, with a static key-value cache.

Each prompt is prefilled once and its keys and values serve all its rows; rows whose tokens are the same so far are
decoded as one, rows that have ended not at all. One uniform number per (row, step) decides the token through the
inverse of the cumulative distribution, so the same uniforms give the same samples however the rows are split.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from projected_grpo.model.decode import Cache, draw
from projected_grpo.model.decoder import Decoder
from projected_grpo.model.graphs import sample_on_graphs


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


@torch.no_grad()
def sample(
    model: Decoder,
    prompts: Sequence[Sequence[int]],
    rows_per_prompt: int,
    uniforms: np.ndarray | Tensor,
    max_new: int,
    ends: Collection[int],
    longest: int = 0,
) -> list[Rollout]:
    """Samples `rows_per_prompt` completions of every prompt; rows come prompt by prompt.

    A row stops at any of the tokens `ends` (kept) or after `max_new` tokens. uniforms `[rows, max_new]`; the recorded
    log-probabilities are those of the distribution that was sampled. longest: tokens of the longest prompt that later
    calls will have, so that a GPU records its step once. Raises ValueError on a shape mismatch.
    """
    rows = len(prompts) * rows_per_prompt
    if tuple(uniforms.shape) != (rows, max_new):
        raise ValueError(f"uniforms are {tuple(uniforms.shape)}, expected {(rows, max_new)}")
    if rows == 0 or max_new == 0:
        return [Rollout([], []) for _ in range(rows)]
    if model.device.type == "cuda":
        u = torch.as_tensor(uniforms)
        drawn = sample_on_graphs(model, prompts, rows_per_prompt, u, max_new, ends, longest)
        return [Rollout(*row) for row in drawn]
    device = model.device
    u = torch.as_tensor(uniforms, dtype=torch.float64).to(device)
    tokens: Any = torch.zeros(rows, max_new, dtype=torch.long, device=device)
    logprobs: Any = torch.zeros(rows, max_new, dtype=torch.float64, device=device)
    lengths = torch.full((rows,), max_new, device=device)

    last_tokens = torch.tensor(sorted(ends), device=device)
    cache = Cache(model, len(prompts), 1, max_new)
    last, positions = cache.prefill(prompts)
    logits = model.logits(last)
    row = torch.arange(rows, device=device)
    slot = row // rows_per_prompt  # which of the live slots a row is in: rows that are alike so far share one
    for t in range(max_new):
        new, logprob = draw(logits, u[row, t], slot)
        tokens[row, t], logprobs[row, t] = new, logprob.double()
        live = torch.isin(new, last_tokens, invert=True)
        lengths[row[~live]] = t + 1
        row, slot, new = row[live], slot[live], new[live]
        if len(row) == 0 or t + 1 == max_new:
            break
        # where rows of a slot drew different tokens, they part
        parts, slot = (slot * model.config.vocab_size + new).unique(return_inverse=True)
        parents = parts // model.config.vocab_size
        cache.follow(parents)
        positions = positions[parents]
        logits = model.logits(cache.decode(parts % model.config.vocab_size, positions))
        positions = positions + 1
    tokens, logprobs = tokens.tolist(), logprobs.tolist()
    return [Rollout(tokens[r][:n], logprobs[r][:n]) for r, n in enumerate(lengths.tolist())]
