"""Given models as a config names them, judged before any job by their names and what lies in their folders."""

import re
from dataclasses import dataclass
from pathlib import Path

from projected_grpo.errors import UserError
from projected_grpo.files import read_json
from projected_grpo.hub import local_folder, split_revision
from projected_grpo.model.architecture import check_family

# What would break a refusal's line, or the call that takes the name.
BROKEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
NO_LINE = "has a line break or another control character in it"


@dataclass(frozen=True)
class Kind:
    """What a name may stand for, in words, and what its folder must hold: one file of each tuple."""

    words: str
    files: tuple[tuple[str, ...], ...]


BASE = Kind(
    "a Hugging Face checkpoint folder, a .gguf file, a hub id (owner/name) or a wheel", (("config.json",),)
)
CHECKPOINT = Kind(
    "a Hugging Face checkpoint folder or a hub id (owner/name)",
    (
        ("config.json",),
        ("model.safetensors", "model.safetensors.index.json"),
        ("tokenizer.json", "tokenizer_config.json"),
    ),
)
ADAPTER = Kind(
    "a PEFT folder or a hub id (owner/name)",
    (("adapter_config.json",), ("adapter_model.safetensors", "adapter_model.bin")),
)


def problem(name: str, kind: Kind) -> str | None:
    """Return what is wrong with a name; None where it is a folder or file of its kind, or a hub id.

    Raises UserError where the config of a base lies here and is of a family that is not run.
    """
    if BROKEN.search(name):
        return NO_LINE
    try:
        return _problem(name, kind)
    except (OSError, ValueError) as error:  # of the system: a name that is too long, say
        return f"cannot be looked up ({getattr(error, 'strerror', None) or error})"


def _problem(name: str, kind: Kind) -> str | None:
    if kind is BASE and name.endswith(".gguf"):
        return None if Path(name).is_file() else "is no file"
    if Path(name).is_dir():
        for files in kind.files:
            if not any(Path(name, file).is_file() for file in files):
                return f"is a folder without {files[0]}"
    elif name.startswith((".", "/", "~")) or split_revision(name)[0].count("/") != 1:
        return "is no folder"
    if kind is BASE and (folder := local_folder(name, "config.json")):
        config = folder / "config.json"
        try:
            check_family(read_json(config), str(config))
        except (TypeError, AttributeError, RecursionError) as error:  # other things for mappings, or nests
            raise UserError(f"{config}: cannot be read ({error})") from error
    return None
