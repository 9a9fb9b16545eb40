"""Codes of a quantisation in a given checkpoint: whether transformers turns them back as they were made."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from projected_grpo.errors import UserError

PLAIN = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2)


def of_checkpoint(folder: Path, config: Any, model: Any) -> str | None:
    """Return what of a checkpoint are codes that transformers took as weights, by config and file; None where nothing.

    config: the checkpoint's; that of the model no longer names a quantisation that was undone.
    """
    from transformers.modeling_utils import _get_resolved_checkpoint_files, load_state_dict

    named, left = (getattr(c, "quantization_config", None) for c in (config, model.config))
    if named and left and not getattr(model, "hf_quantizer", None):
        return f"it knows no quant_method {named.get('quant_method')!r}"
    own = getattr(config, "transformers_weights", None)
    files, _ = _get_resolved_checkpoint_files(str(folder), None, None, None, {}, False, own)
    found = {key: W for file in files or () for key, W in load_state_dict(file, "meta").items()}
    scaled = {module for module, _, rest in (key.partition(".weight") for key in found) if rest}
    for key, W in sorted(found.items()):
        if W.dtype in PLAIN or not key.endswith((".weight", ".bias")):
            continue
        if not named or key.endswith(".bias") or key.removesuffix(".weight") not in scaled:
            return f"{key} is {W.dtype} in the file, without {'scales' if named else 'a quantization_config'}"
        if named.get("quant_method") == "fp8" and (why := _unfit(W, found.get(f"{key}_scale_inv"), named)):
            return f"{key} {why}"
    return None


def _unfit(W: Tensor, scales: Tensor | None, said: dict[str, Any]) -> str | None:
    """Why float8 codes are not turned back as they were made: transformers cuts each side in parts of one length."""
    if W.dtype not in FLOAT8:
        return f"is {W.dtype} in the file, where float8 is said"
    block = said.get("weight_block_size", (128, 128))
    if scales is None or scales.numel() == 1 or not block:
        return None
    blocks = [-(-side // length) for side, length in zip(W.shape, block, strict=True)]
    cut = any(side % length and side > length for side, length in zip(W.shape, block, strict=True))
    if list(scales.shape) != blocks or cut:
        return f"of {tuple(W.shape)} has scales of {tuple(scales.shape)}, allowed: whole blocks of {tuple(block)}"
    return None


def not_plain(source: str, why: str) -> UserError:
    return UserError(
        f"{source}: transformers does not turn its weights into plain ones ({why}), "
        "allowed: plain weights, or codes with all their scales"
    )
