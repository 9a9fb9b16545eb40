"""Per-label adapter gradients from one backward pass.

A `Tape` is the `linear` hook of a forward pass: it keeps each adapted Linear's input, and in the backward turns
input and output gradient into the adapter's gradient, summed over the tokens of each label (a sample, or all of
the student's and all of the teacher's tokens). No weight gradient is kept, no second backward is run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from projected_grpo.method.adapter import Adapter, Labels, Parameters
from projected_grpo.method.optimizer import clip_factor
from projected_grpo.model.batch import Batch
from projected_grpo.model.decoder import Decoder
from projected_grpo.model.kernels import linear


class _TapedLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, W: Tensor, anchor: Tensor, tape: "Tape", name: str) -> Tensor:
        ctx.save_for_backward(x, W)
        ctx.tape, ctx.name = tape, name
        return linear(x, W)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> "tuple[Tensor | None, None, None, None, None]":
        x, W = ctx.saved_tensors
        ctx.tape.add(ctx.name, x, g)
        return (g @ W if ctx.needs_input_grad[0] else None), None, None, None, None


class Tape:
    """Collects `grads[name]`, `[n_labels, size]`; several backward passes add up."""

    def __init__(self, adapter: Adapter, n_labels: int):
        self.adapter = adapter
        self.n_labels = n_labels
        self._labels: dict[int, Labels] = {}
        self.grads: dict[str, Tensor] = {}
        # The first layer's input needs no gradient; the anchor makes its Linears part of the graph all the same.
        self._anchor = torch.zeros((), requires_grad=True)

    def begin(self, batch: Batch) -> None:
        """Takes the labels, below `n_labels`, of the batch that is computed next."""
        # A Linear sees all nodes, or (the last layer) those that predict something.
        parts = (batch.labels, batch.labels[batch.predictors])
        self._labels = {len(part): Labels(part, self.n_labels) for part in parts}

    def linear(self, name: str, x: Tensor, W: Tensor) -> Tensor:
        return _TapedLinear.apply(x, W, self._anchor, self, name)

    def add(self, name: str, x: Tensor, g: Tensor) -> None:
        gradient = self.adapter.gradient(name, x, g, self._labels[len(x)])
        self.grads[name] = self.grads[name] + gradient if name in self.grads else gradient


@dataclass(frozen=True)
class Gradient:
    """A gradient by source, `[size]` per module, and what the forward saw.

    by_label: the same of the rows of each label, where rows have labels; log_ratio: log(student / teacher) of the
    teacher tokens with stored log-probs; pushed: their advantages; tokens: that went through the model.
    """

    student: Parameters
    teacher: Parameters
    loss: float
    log_ratio: Tensor
    pushed: Tensor
    tokens: int
    by_label: tuple[Parameters, ...] = ()

    @cached_property
    def total(self) -> Parameters:
        return {name: g + self.teacher[name] for name, g in self.student.items()}

    def clipped(self, limit: float | None) -> "Gradient":
        """Return the gradient scaled down so that its norm is at most `limit`."""
        factor = clip_factor(self.total, limit)
        if factor == 1:
            return self
        student, teacher, *by_label = (
            {name: g * factor for name, g in part.items()}
            for part in (self.student, self.teacher, *self.by_label)
        )
        return replace(self, student=student, teacher=teacher, by_label=tuple(by_label))


@dataclass(frozen=True)
class Sample:
    """A prompt and a completion as token ids."""

    prompt: list[int]
    completion: list[int]


def sample_losses(logprobs: Tensor, lengths: Sequence[int], weights: Tensor) -> Tensor:
    """Return `[samples]`: weights[i] times the summed negative log-probs of sample i's tokens."""
    rows = torch.repeat_interleave(
        torch.arange(len(lengths), device=logprobs.device), torch.tensor(lengths, device=logprobs.device)
    )
    return torch.zeros(len(lengths), device=logprobs.device).index_add(0, rows, -logprobs) * weights


def sample_gradients(
    model: Decoder,
    adapter: Adapter,
    samples: Sequence[Sample],
    norm: float | None = None,
    batch_tokens: int = 8192,
) -> tuple[dict[str, Tensor], Tensor]:
    """Return `grads[name] [samples, size]` and the losses `[samples]` of every sample by itself.

    The loss of a sample is the mean NLL of its completion tokens; with `norm` the summed NLL divided by `norm`
    (what a contrastive GRPO group gives).
    """
    grads: dict[str, list[Tensor]] = {name: [] for name in adapter.names}
    losses = []
    for chunk in _chunks(samples, batch_tokens):
        rows = [(sample.prompt, sample.completion) for sample in chunk]
        batch = Batch(rows, labels=range(len(chunk))).to(model.device)
        tape = Tape(adapter, len(chunk))
        tape.begin(batch)
        logprobs = model.logprobs(batch, linear=tape.linear)
        lengths = [len(sample.completion) for sample in chunk]
        scale = torch.tensor([1.0 / (norm or length) for length in lengths], device=logprobs.device)
        loss = sample_losses(logprobs, lengths, scale)
        loss.sum().backward()
        losses.append(loss.detach())
        for name in adapter.names:
            grads[name].append(tape.grads[name])
    return {name: torch.cat(parts) for name, parts in grads.items()}, torch.cat(losses)


def _chunks(samples: Sequence[Sample], batch_tokens: int) -> Iterator[list[Sample]]:
    """Yield runs of samples of at most `batch_tokens` tokens (one sample at the least)."""
    chunk: list[Sample]
    chunk, tokens = [], 0
    for sample in samples:
        size = len(sample.prompt) + len(sample.completion)
        if chunk and tokens + size > batch_tokens:
            yield chunk
            chunk, tokens = [], 0
        chunk.append(sample)
        tokens += size
    if chunk:
        yield chunk
