"""The forward's small parts with gradients written out, which spares most of autograd's memory traffic.

The tests hold each against autograd in float64.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        scale = norm.square_().mul_(1 / x.shape[-1]).add_(eps).rsqrt_()
        ctx.save_for_backward(x, weight, scale)
        return (x * scale).mul_(weight)

    @staticmethod
    def backward(ctx, grad: Tensor):
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
    def forward(ctx, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        return turn(x, cos, sin)

    @staticmethod
    def backward(ctx, grad: Tensor):
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
    def forward(ctx, x: Tensor, head: Tensor, targets: Tensor, chunk: int) -> Tensor:
        turned = head if x.is_cuda else head.t().contiguous().t()
        wide = torch.float64 if x.dtype == torch.float64 else torch.float32
        logprobs = torch.empty(len(x), dtype=wide, device=x.device)
        slope = torch.empty_like(x) if ctx.needs_input_grad[0] else None
        for at in range(0, len(x), chunk):
            part, picked = slice(at, at + chunk), targets[at : at + chunk]
            logits = (x[part] @ turned.t()).to(wide)
            logits -= logits.amax(-1, keepdim=True)
            logprobs[part] = logits.gather(1, picked[:, None])[:, 0]
            total = logits.exp_().sum(-1, keepdim=True)
            logprobs[part] -= total[:, 0].log()
            if slope is not None:
                # d log p_y / dx = head_y - sum_v p_v head_v
                mean = (logits.to(x.dtype) @ head).div_(total)
                torch.sub(head.index_select(0, picked), mean, out=slope[part])
        ctx.save_for_backward(slope)
        return logprobs

    @staticmethod
    def backward(ctx, grad: Tensor):
        (slope,) = ctx.saved_tensors
        return slope * grad[:, None].to(slope.dtype), None, None, None


def token_logprobs(x: Tensor, head: Tensor, targets: Tensor, chunk: int) -> Tensor:
    """Log-softmax of `x head^T` at the targets, `[tokens]`, at least fp32; x `[tokens, d]`, head `[vocabulary, d]`.

    Logits of at most `chunk` tokens exist at a time and none is kept: the gradient for x is formed on the way
    forward. The head gets none.
    """
    return _TokenLogprobs.apply(x, head, targets, chunk)
