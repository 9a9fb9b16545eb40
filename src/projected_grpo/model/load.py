"""Canonical folders: the one form in which models are read. The pipeline's own are written so, given ones by the door.

`config.json` with the keys of `architecture.Config`, `model.safetensors` in one dtype, `tokenizer.json` without
truncation or padding, `chat_template.jinja`, `tokenizer_config.json` with the special tokens, `generation_config.json`
with all end tokens (the end of a turn first), and `digests.json` of these. transformers loads it, too.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from projected_grpo.devices import claim
from projected_grpo.digests import one_digest
from projected_grpo.errors import UserError, nearest
from projected_grpo.files import atomic, read_json, write_json
from projected_grpo.model.architecture import Config, shapes
from projected_grpo.model.decoder import Decoder
from projected_grpo.model.tokenizer import GENERATION, SETTINGS, TEMPLATE, Tokenizer

if TYPE_CHECKING:
    import os

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float64": torch.float64}
WEIGHTS, DIGESTS = "model.safetensors", "digests.json"
TOKENIZER = ("tokenizer.json", SETTINGS, TEMPLATE, GENERATION)


def load(
    folder: str | os.PathLike,
    dtype: str | torch.dtype = torch.float32,
    device: str | torch.device = "cpu",
) -> tuple[Decoder, Tokenizer]:
    """Load the model of a canonical folder, and its tokenizer. Raises UserError for any other, or a damaged one."""
    check_digests(folder)
    return load_weights(folder, dtype, device), Tokenizer(folder)


def load_weights(
    folder: str | os.PathLike,
    dtype: str | torch.dtype = torch.float32,
    device: str | torch.device = "cpu",
) -> Decoder:
    """Load the model alone; on cuda a free GPU is this process's.

    Raises UserError where the weights are not exactly those that the config asks for.
    """
    if torch.device(device).type == "cuda":
        claim()
    if isinstance(dtype, str):
        if dtype not in DTYPES:
            raise UserError(f"dtype {dtype!r}: {nearest(dtype, DTYPES)}")
        dtype = DTYPES[dtype]
    folder = Path(folder)
    config = Config.from_dict(read_json(folder / "config.json"), str(folder / "config.json"))
    file, wanted = folder / WEIGHTS, shapes(config)
    weights: dict[str, Tensor] = {}
    try:
        with safe_open(file, "pt") as tensors:
            _compare(file, wanted.keys(), tensors.keys())
            for name, shape in wanted.items():
                W = tensors.get_tensor(name)
                if W.shape != shape or W.dtype not in DTYPES.values():
                    found = f"{tuple(W.shape)} of {W.dtype}"
                    raise UserError(f"{file}: {name} is {found}, expected {shape} of {', '.join(DTYPES)}")
                weights[name] = W.to(device, dtype)
    except (SafetensorError, OSError) as error:
        raise UserError(f"{file}: damaged or absent ({_line(error)})") from error
    return Decoder(config, weights)


def save_weights(model: Decoder, folder: str | os.PathLike) -> None:
    """Write `config.json` and `model.safetensors` as transformers reads them (a tied head once)."""
    folder = Path(folder)
    write_json(folder / "config.json", model.config.to_dict(str(model.dtype).removeprefix("torch.")))
    tensors = {n: model.weights[n].detach().cpu().contiguous() for n in shapes(model.config)}
    with atomic(folder / WEIGHTS) as temporary:
        save_file(tensors, temporary, metadata={"format": "pt"})


def copy_tokenizer(source: str | os.PathLike, folder: str | os.PathLike) -> None:
    """Copy tokenizer, template and end tokens of one canonical folder into another."""
    for name in TOKENIZER:
        shutil.copyfile(Path(source, name), Path(folder, name))


def write_digests(folder: str | os.PathLike) -> None:
    """Write the digests of a canonical folder's files: its last file."""
    folder = Path(folder)
    names = sorted(path.name for path in folder.iterdir() if path.is_file() and path.name != DIGESTS)
    write_json(folder / DIGESTS, {name: one_digest(folder / name) for name in names})


def check_digests(folder: str | os.PathLike) -> None:
    """Raise UserError where a folder is not canonical, or a file of it is not as it was written."""
    folder = Path(folder)
    if not (folder / DIGESTS).is_file():
        raise UserError(
            f"{folder}: no canonical folder (it lacks {DIGESTS}); `projected-grpo canonical` makes one"
        )
    for name, digest in read_json(folder / DIGESTS).items():
        if one_digest(folder / name) != digest:
            raise UserError(f"{folder / name}: damaged or edited, {DIGESTS} has another digest")


def _compare(file: Path, wanted: Iterable[str], found: Iterable[str]) -> None:
    missing, unexpected = set(wanted) - set(found), set(found) - set(wanted)
    for names, what in ((missing, "are missing"), (unexpected, "have no place in the model")):
        if names:
            raise UserError(f"{file}: {len(names)} weights {what}, first {min(names)}")


def _line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]
