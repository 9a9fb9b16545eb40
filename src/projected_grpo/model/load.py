"""Checkpoints: a folder or hub id, optionally with a PEFT LoRA merged in, and its tokenizer.

A LoRA is merged in fp32 and rounded once to the model's dtype.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from projected_grpo.devices import claim
from projected_grpo.errors import UserError, nearest
from projected_grpo.files import atomic, read_json, write_json
from projected_grpo.hub import local_folder
from projected_grpo.model.architecture import Config, shapes
from projected_grpo.model.decoder import Decoder
from projected_grpo.model.tokenizer import Tokenizer

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float64": torch.float64}
CHECKPOINT_FILES = ["*.json", "*.safetensors", "*.jinja", "*.txt"]


def load(
    model: str | Path,
    dtype: str | torch.dtype = torch.float32,
    device: str | torch.device = "cpu",
    teacher: str | Path | None = None,
) -> tuple[Decoder, Tokenizer]:
    """The model in a checkpoint folder or hub id, and its tokenizer; `teacher` is a PEFT LoRA to merge in.

    Raises UserError for anything that is no checkpoint or not reachable.
    """
    folder = find(model)
    return load_weights(folder, dtype, device, teacher), Tokenizer(folder)


def load_weights(
    model: str | Path,
    dtype: str | torch.dtype = torch.float32,
    device: str | torch.device = "cpu",
    teacher: str | Path | None = None,
) -> Decoder:
    """`load` without the tokenizer; on cuda a free GPU is this process's."""
    folder = find(model)
    if torch.device(device).type == "cuda":
        claim()
    if isinstance(dtype, str):
        if dtype not in DTYPES:
            raise UserError(f"dtype {dtype!r}: {nearest(dtype, DTYPES)}")
        dtype = DTYPES[dtype]
    config = Config.from_dict(read_json(folder / "config.json"), str(folder / "config.json"))
    wanted = shapes(config)
    lora = dict(lora_updates(teacher, config)) if teacher is not None else {}
    weights: dict[str, Tensor] = {}
    for file in _shards(folder):
        try:
            with safe_open(file, "pt") as tensors:
                for name in tensors.keys():  # noqa: SIM118 (not a dict)
                    if name not in wanted:
                        continue
                    W = tensors.get_tensor(name).to(device)
                    if W.shape != wanted[name]:
                        raise UserError(f"{file}: {name} is {tuple(W.shape)}, expected {wanted[name]}")
                    if name in lora:
                        A, B, scale = (t.to(device) if isinstance(t, Tensor) else t for t in lora[name])
                        W = W.float() + scale * (B.float() @ A.float())
                    weights[name] = W.to(dtype)
        except SafetensorError as error:
            raise UserError(f"{file}: damaged ({_line(error)})") from error
    missing = sorted(wanted.keys() - weights.keys())
    if missing:
        raise UserError(f"{folder}: {len(missing)} weights are missing, first {missing[0]}")
    return Decoder(config, weights)


def save_weights(model: Decoder, folder: str | Path) -> None:
    """Writes `config.json` and `model.safetensors` as transformers reads them (a tied head once)."""
    folder = Path(folder)
    write_json(folder / "config.json", model.config.to_dict(str(model.dtype).removeprefix("torch.")))
    tensors = {n: model.weights[n].detach().cpu().contiguous() for n in shapes(model.config)}
    with atomic(folder / "model.safetensors") as temporary:
        save_file(tensors, temporary, metadata={"format": "pt"})


def find(name: str | Path, marker: str = "config.json") -> Path:
    """The folder of a checkpoint: `name` itself, or the local copy of a hub id (downloaded where there is none).

    `marker` is the file that makes a folder what is looked for. Raises UserError.
    """
    folder = Path(name)
    if folder.is_dir():
        if not (folder / marker).is_file():
            raise UserError(f"{name}: a folder without {marker}; expected a Hugging Face checkpoint")
        return folder
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", str(name)) or str(name).startswith("."):
        raise UserError(f"{name}: no such folder, and no hub id (owner/name)")
    local = local_folder(str(name), marker)
    if local and _complete(local):
        return local
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(str(name), allow_patterns=CHECKPOINT_FILES))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise UserError(
            f"{name}: no such folder, and the hub did not give it ({type(error).__name__}); download it "
            "where the hub can be reached and put the folder's path in the config in place of the id"
        ) from error


def lora_updates(teacher: str | Path, config: Config) -> Iterator[tuple[str, tuple[Tensor, Tensor, float]]]:
    """`(weight name, (A [rank, d_in], B [d_out, rank], scale))` of a PEFT LoRA folder or hub id.

    Raises UserError for other PEFT methods, options beyond plain LoRA, or Linears the model does not have.
    """
    folder = find(teacher, "adapter_config.json")
    options = read_json(folder / "adapter_config.json")
    beyond = [
        k
        for k in ("use_dora", "modules_to_save", "fan_in_fan_out", "trainable_token_indices")
        if options.get(k)
    ]
    if options.get("peft_type") != "LORA" or options.get("bias", "none") != "none" or beyond:
        what = ", ".join(beyond) or f"peft_type {options.get('peft_type')}, bias {options.get('bias')}"
        raise UserError(f"{folder}/adapter_config.json: {what}: only plain LoRA adapters are merged")
    file = folder / "adapter_model.safetensors"
    if not file.is_file():
        raise UserError(f"{folder}: no adapter_model.safetensors")
    with safe_open(file, "pt") as tensors:
        sides = {name: tensors.get_tensor(name) for name in tensors.keys()}  # noqa: SIM118
    wanted = shapes(config)
    for key in sorted(sides):
        match = re.fullmatch(r"base_model\.model\.(.+)\.lora_([AB])(?:\.default)?\.weight", key)
        name = f"{match[1]}.weight" if match else ""
        if name not in wanted or len(wanted[name]) != 2:
            raise UserError(f"{file}: {key} fits no Linear of the model")
        if match[2] == "B":
            continue
        A, B = sides[key], sides.get(key.replace(".lora_A", ".lora_B"))
        if B is None or (B.shape[0], A.shape[1]) != wanted[name]:
            raise UserError(f"{file}: {key} and its lora_B do not make a {wanted[name]} update")
        alpha = options["lora_alpha"]
        for pattern, value in (options.get("alpha_pattern") or {}).items():
            if re.match(rf"(.*\.)?({pattern})$", match[1]):
                alpha = value
                break
        yield name, (A, B, alpha / (len(A) ** 0.5 if options.get("use_rslora") else len(A)))


def _complete(folder: Path) -> bool:
    """Return whether a downloaded checkpoint or adapter has its weights, all of them."""
    if (folder / "adapter_config.json").is_file():
        return (folder / "adapter_model.safetensors").is_file()
    try:
        return bool(_shards(folder)) and (folder / "tokenizer_config.json").is_file()
    except UserError:
        return False


def _shards(folder: Path) -> list[Path]:
    """The safetensors files of a checkpoint, by its index where it has one."""
    index = folder / "model.safetensors.index.json"
    names = sorted(set(read_json(index)["weight_map"].values())) if index.is_file() else ["model.safetensors"]
    for name in names:
        if not (folder / name).is_file():
            raise UserError(f"{folder}: no {name}")
    return [folder / name for name in names]


def _line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]
