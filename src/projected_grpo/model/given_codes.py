"""Codes of a quantisation in a given checkpoint: whether transformers turns them back as they were made."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from projected_grpo.errors import UserError

PLAIN = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2)
# What a scale may be: a number, or an exponent of two.
NUMBERS = (*PLAIN, *FLOAT8, torch.float8_e8m0fnu, torch.uint8)
SCALE = re.compile(r"\.(weight_scale_inv|scale|qscale_weight)$")  # by the names that transformers knows
# A float8 quantisation -> rows and columns of a block whose size is not said.
BLOCKS = {"fp8": (128, 128), "mxfp8": (1, 32)}


def of_checkpoint(found: Mapping[str, Tensor], config: Any, model: Any) -> str | None:
    """Return what of a checkpoint are codes that transformers took as weights, by config and file; None where nothing.

    found: name -> tensor, without its numbers; config: the checkpoint's; that of the model no longer names a
    quantisation that was undone.
    """
    named, left = (getattr(c, "quantization_config", None) for c in (config, model.config))
    method = named and named.get("quant_method")
    if named and left and not getattr(model, "hf_quantizer", None):
        return f"it knows no quant_method {method!r}"
    if named and method in BLOCKS:
        block = named.get("weight_block_size", BLOCKS[method])
        return _unfit_float8(found, block, by_row=not named.get("weight_block_size"))
    scaled = {module for module, _, rest in (key.partition(".weight") for key in found) if rest}
    for key, W in sorted(found.items()):
        if W.dtype in PLAIN or not key.endswith((".weight", ".bias")):
            continue
        if not named or key.endswith(".bias") or key.removesuffix(".weight") not in scaled:
            return f"{key} is {W.dtype} in the file, without {'scales' if named else 'a quantization_config'}"
    return None


def _unfit_float8(found: Mapping[str, Tensor], block: Sequence[int] | None, by_row: bool) -> str | None:
    """Why float8 codes are not turned back as they were made; None where they are.

    transformers takes any tensor for codes that has scales, any number for a scale, and cuts each side of a matrix in
    parts of one length. block: the sides that are said; by_row: each row may have a scale, too.
    """
    of: dict[str, str] = {}
    for key in sorted(found):
        if SCALE.search(key) and (other := of.setdefault(SCALE.sub(".weight", key), key)) != key:
            return f"{key} and {other} are scales of one weight"
    for key, W in sorted(found.items()):
        if W.dtype not in PLAIN and key.endswith((".weight", ".bias")) and key not in of:
            return f"{key} is {W.dtype} in the file, without scales"
        if key not in of:
            continue
        S = found[of[key]]
        if W.dtype not in FLOAT8:
            return f"{key} is {W.dtype} in the file, where float8 is said by {of[key]}"
        if S.dtype not in NUMBERS:
            return f"{of[key]} is {S.dtype} in the file, allowed: numbers, or exponents in uint8"
        rows = by_row and tuple(S.shape) == (len(W), 1)
        if S.numel() > 1 and not rows and not _is_whole(W, S, block):
            cut = f"whole blocks of {tuple(block)}" if block else "one alone, or one for each row"
            return f"{key} of {tuple(W.shape)} has scales of {tuple(S.shape)}, allowed: {cut}"
    return None


def _is_whole(W: Tensor, S: Tensor, block: Sequence[int] | None) -> bool:
    """Return whether scales are one for each block, and each side has one block alone or whole ones."""
    if not block or not W.dim() == S.dim() == len(block):
        return False
    sides = zip(W.shape, S.shape, block, strict=True)
    return all(n == -(-side // length) and (n == 1 or side % length == 0) for side, n, length in sides)


def not_plain(source: str, why: str) -> UserError:
    return UserError(
        f"{source}: transformers does not turn its weights into plain ones ({why}), "
        "allowed: plain weights, or codes with all their scales"
    )
