"""The forward's small parts with gradients written out, which spares most of autograd's memory traffic.

The tests hold each against autograd in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        scale = norm.square_().mul_(1 / x.shape[-1]).add_(eps).rsqrt_()
        ctx.save_for_backward(x, weight, scale)
        return (x * scale).mul_(weight)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        # y = w x s with s = (|x|^2 / d + eps)^-1/2, so dx = s w dy - x s^3 <w dy, x> / d
        x, weight, scale = ctx.saved_tensors
        d_weight = None
        if ctx.needs_input_grad[1]:
            d_weight = (grad * x).mul_(scale).flatten(0, -2).sum(0)
        if not ctx.needs_input_grad[0]:
            return None, d_weight, None
        dx = grad * weight
        along = (dx * x).sum(-1, keepdim=True)
        along.mul_(scale.pow(3)).mul_(-1 / x.shape[-1])
        return dx.mul_(scale).addcmul_(x, along), d_weight, None


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """`x / rms(x) * weight` over the last dimension; a bfloat16 input's statistics are taken in fp32."""
    if x.is_cuda or x.dtype == torch.bfloat16:  # there torch's kernel is fused, or keeps the fp32 part
        return F.rms_norm(x, x.shape[-1:], weight, eps)
    return _RMSNorm.apply(x, weight, eps)


class _Rotate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        return turn(x, cos, sin)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        cos, sin = ctx.saved_tensors
        return turn(grad, cos, -sin), None, None  # a rotation's transpose turns back


def turn(x: Tensor, cos: Tensor, sin: Tensor, out: Tensor | None = None) -> Tensor:
    """`rotate` without a gradient."""
    return torch.addcmul(x * cos, x.roll(x.shape[-1] // 2, -1), sin, out=out)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of `x [tokens, heads, D]`; cos `[tokens, 1, D]` is (cos, cos), sin (-sin, sin)."""
    return _Rotate.apply(x, cos, sin)


def linear(x: Tensor, W: Tensor) -> Tensor:
    """`x W^T`, as `F.linear`. On the CPU MKL is a third slower where W is tall and read row by row: W is turned."""
    if not x.is_cuda and len(W) > W.shape[1] and len(x) > len(W):
        return x @ W.t().contiguous()
    return F.linear(x, W)


class _TokenLogprobs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        head: Tensor,
        targets: Tensor,
        source: Tensor,
        offsets: Sequence[int],
        chunk: int,
    ) -> Tensor:
        turned = head if x.is_cuda else head.t().contiguous().t()
        wide = torch.float64 if x.dtype == torch.float64 else torch.float32
        logprobs = torch.empty(len(targets), dtype=wide, device=x.device)
        x_slope, head_slope = ctx.needs_input_grad[:2]
        mean = torch.empty_like(x) if x_slope else None
        p = torch.empty(len(x), len(head), dtype=x.dtype, device=x.device) if head_slope else None
        for at in range(0, len(x), chunk):
            end = min(at + chunk, len(x))
            part, mine = slice(at, end), slice(offsets[at], offsets[end])
            logits = (x[part] @ turned.t()).to(wide)
            logits -= logits.amax(-1, keepdim=True)
            row = source[mine] - at
            logprobs[mine] = logits[row, targets[mine]]
            total = logits.exp_().sum(-1, keepdim=True)
            logprobs[mine] -= total[:, 0].log().index_select(0, row)
            if head_slope:
                torch.div(logits, total, out=p[part])  # type: ignore[index]
            if x_slope:
                torch.div(logits.to(x.dtype) @ head, total, out=mean[part])  # type: ignore[index]
        ctx.save_for_backward(x, head, targets, source, mean, p)
        return logprobs

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None, None, None, None]:
        # d log p_y / d logits_v = [v = y] - p_v, summed over what a row predicts
        x, head, targets, source, mean, p = ctx.saved_tensors
        grad = grad.to(x.dtype)[:, None]
        weight = x.new_zeros(len(x), 1).index_add_(0, source, grad)
        dx = d_head = None
        if mean is not None:
            dx = mean.mul(-weight).index_add_(0, source, head.index_select(0, targets) * grad)
        if p is not None:
            d_head = (p * weight).t().neg() @ x
            d_head.index_add_(0, targets, x.index_select(0, source) * grad)
        return dx, d_head, None, None, None, None


def token_logprobs(
    x: Tensor, head: Tensor, targets: Tensor, source: Tensor, offsets: Sequence[int], chunk: int
) -> Tensor:
    """Log-softmax of `x head^T` at targets, `[predictions]`, at least fp32; x `[rows, d]`, head `[vocabulary, d]`.

    source: the row of x that each target is predicted by, ascending; offsets: where each row's targets begin, and
    the end. Logits of at most `chunk` rows exist at a time, and none is kept but where the head has a gradient: that
    for x is half formed on the way forward.
    """
    return _TokenLogprobs.apply(x, head, targets, source, offsets, chunk)
