"""Norm and rotary embedding with gradients written out, which spares most of autograd's memory traffic.

The formulas are those of Qwen3; the tests hold both against autograd in float64.
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
