"""Packed batches: no padding in the linears, and a prompt's tokens stand once for all its completions.

Token order is prompt 0, prompt 1, ..., then completion 0, completion 1, ...; only attention looks at the
batch as rectangles, through `Rectangle`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class _Gather(torch.autograd.Function):
    """`x[index]` for an index without repeats: its gradient is then a plain copy, not a scattered sum."""

    @staticmethod
    def forward(ctx, x: Tensor, index: Tensor) -> Tensor:
        ctx.save_for_backward(index)
        ctx.shape = x.shape
        return x.index_select(0, index)

    @staticmethod
    def backward(ctx, grad: Tensor):
        (index,) = ctx.saved_tensors
        return grad.new_zeros(ctx.shape).index_copy_(0, index, grad), None


class Rectangle:
    """Places ragged rows, packed one after the other, left-aligned in a `[rows, width]` rectangle."""

    def __init__(self, lengths: Sequence[int]):
        self.lengths = torch.tensor(lengths, dtype=torch.long)
        self.rows, self.width = len(lengths), max(lengths, default=0)
        self.ragged = any(n != self.width for n in lengths)
        starts = torch.arange(self.rows) * self.width - (self.lengths.cumsum(0) - self.lengths)
        self.slot = torch.arange(int(self.lengths.sum())) + starts.repeat_interleave(self.lengths)

    def to(self, device: torch.device) -> Rectangle:
        self.lengths, self.slot = self.lengths.to(device), self.slot.to(device)
        return self

    def pad(self, x: Tensor) -> Tensor:
        """`[tokens, ...]` -> `[rows, width, ...]`, zero where a row is shorter."""
        if self.ragged:
            x = x.new_zeros(self.rows * self.width, *x.shape[1:]).index_copy(0, self.slot, x)
        return x.view(self.rows, self.width, *x.shape[1:])

    def pack(self, x: Tensor) -> Tensor:
        """`[rows, width, ...]` -> `[tokens, ...]`."""
        x = x.reshape(self.rows * self.width, *x.shape[2:])
        return _Gather.apply(x, self.slot) if self.ragged else x


class Batch:
    """Rows of (prompt, completion) that share prompts.

    prompts: token ids of each distinct prompt, none empty; completions: token ids of each row, may be empty;
    unit: `unit[i]` is the prompt of row i. Raises ValueError for an empty prompt or a unit out of range.
    """

    def __init__(
        self, prompts: Sequence[Sequence[int]], completions: Sequence[Sequence[int]], unit: Sequence[int]
    ):
        if any(len(p) == 0 for p in prompts):
            raise ValueError("an empty prompt: nothing precedes its completion's first token")
        if len(unit) != len(completions) or any(not 0 <= u < len(prompts) for u in unit):
            raise ValueError(
                f"unit must name one of {len(prompts)} prompts for each of {len(completions)} rows"
            )
        self.prompt_lengths = [len(p) for p in prompts]
        self.completion_lengths = [len(c) for c in completions]
        self.unit = torch.tensor(unit, dtype=torch.long)
        self.tokens = torch.tensor([t for part in (*prompts, *completions) for t in part], dtype=torch.long)
        self.prompt = Rectangle(self.prompt_lengths)
        self.completion = Rectangle(self.completion_lengths)
        self.n_prompt_tokens = sum(self.prompt_lengths)
        self.targets = self.tokens[self.n_prompt_tokens :]

        ends = self.prompt.lengths.cumsum(0)
        starts = self.completion.lengths.cumsum(0) - self.completion.lengths
        row = torch.arange(len(completions)).repeat_interleave(self.completion.lengths)
        within = torch.arange(len(self.targets)) - starts[row]
        first = torch.cat(
            [torch.arange(n) for n in self.prompt_lengths] or [torch.zeros(0, dtype=torch.long)]
        )
        self.positions = torch.cat([first, self.prompt.lengths[self.unit[row]] + within])
        # What predicts a completion token: the token before it, which for the first is the prompt's last.
        before = self.n_prompt_tokens + torch.arange(len(self.targets)) - 1
        self.predictors = torch.where(within == 0, ends[self.unit[row]] - 1, before)

    @property
    def device(self) -> torch.device:
        return self.tokens.device

    def to(self, device: torch.device) -> Batch:
        """Moves the batch in place; returns it."""
        if self.device != torch.device(device):
            for name in ("unit", "tokens", "targets", "positions", "predictors"):
                setattr(self, name, getattr(self, name).to(device))
            self.prompt.to(device)
            self.completion.to(device)
        return self

    def owner(self, prompt_labels: Sequence[int] | Tensor, row_labels: Sequence[int] | Tensor) -> Tensor:
        """LongTensor `[tokens]`: the label of every packed token, from a label per prompt and one per row."""
        labels = torch.cat([torch.as_tensor(prompt_labels), torch.as_tensor(row_labels)]).long()
        lengths = torch.tensor(self.prompt_lengths + self.completion_lengths)
        return labels.repeat_interleave(lengths.to(labels.device)).to(self.device)
