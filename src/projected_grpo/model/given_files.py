"""The files of a given checkpoint: one tensor for each weight, in the folder, at the positions that the config says."""

import os
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from projected_grpo.errors import UserError

PREFIXES = re.compile(r"^(model\.)+")  # with which or without transformers finds a weight
SERIES = re.compile(r"(.*-)\d+(-of-\d+\.\w+)")
TURNS = "rotary_emb.inv_freq"  # a buffer of older checkpoints, which transformers makes anew


def tensors(folder: Path, config: Any, model: Any) -> dict[str, Tensor]:
    """Return name -> tensor, without its numbers, of a checkpoint as transformers finds its files.

    Raises UserError for files outside of the folder, or beside the index; where one weight has two values; for
    positions that are turned by other angles than the model's.
    """
    from transformers.modeling_utils import _get_resolved_checkpoint_files, load_state_dict

    own = getattr(config, "transformers_weights", None)
    files, _ = _get_resolved_checkpoint_files(str(folder), None, None, None, {}, False, own)
    _check_names(Path(os.path.abspath(folder)), [os.path.abspath(file) for file in files or ()])
    found: dict[str, Tensor] = {}
    places: dict[str, tuple[str, str]] = {}

    @lru_cache(maxsize=1)
    def numbers(file: str) -> dict[str, Tensor]:
        return load_state_dict(file, "cpu")

    angles = dict(model.named_buffers()).get(f"model.{TURNS}")
    for file in files or ():
        for key, W in load_state_dict(file, "meta").items():
            other = places.setdefault(PREFIXES.sub("", key), (file, key))
            if other != (file, key) and not _equal(numbers(file)[key], numbers(other[0])[other[1]]):
                raise UserError(
                    f"{file}: {key} is another here than {other[1]} in {other[0]}, allowed: one value"
                )
            if key.endswith(TURNS) and angles is not None and not _close(numbers(file)[key], angles):
                raise UserError(f"{file}: {key} is not what config.json gives, allowed: its rope_theta's")
            found[key] = W
    return found


def _check_names(folder: Path, files: Sequence[str]) -> None:
    for file in files:
        if not Path(file).is_relative_to(folder):
            raise UserError(f"{folder}: its index names {file}, allowed: files of the folder")
    series = {SERIES.sub(r"\1*\2", Path(file).name) for file in files}
    for path in sorted(folder.iterdir()):
        if SERIES.sub(r"\1*\2", path.name) in series and str(path) not in files:
            raise UserError(f"{path}: not in the index of its series, allowed: an index of all files")


def _equal(one: Tensor, other: Tensor) -> bool:
    return one.dtype == other.dtype and torch.equal(one.double(), other.double())


def _close(found: Tensor, angles: Tensor) -> bool:
    """Return whether angles are the same but for the rounding of their dtype."""
    few = 8 * torch.finfo(found.dtype).eps
    return found.shape == angles.shape and torch.allclose(found.float(), angles.cpu().float(), few, 1e-7)
