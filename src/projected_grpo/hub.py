"""Where a given checkpoint lies on this machine: a folder, a file, or a hub id in the local cache.

No library above, since plans ask.
"""

import json
import os
from contextlib import suppress
from functools import cache
from pathlib import Path

from projected_grpo.digests import file_digest


def split_revision(name: str) -> tuple[str, str]:
    """Return hub id and revision of `owner/name` or `owner/name@revision`; without one it is `main`."""
    owner, _, revision = name.partition("@")
    return owner, revision or "main"


@cache
def local_folder(name: str, marker: str) -> Path | None:
    """Return the folder of a checkpoint by folder or hub id; None where it (or its file `marker`) is not here.

    Of a hub id it is the revision that is in the cache: what is here stays what is used until somebody fetches
    another.
    """
    folder = Path(name)
    if not folder.is_dir():
        owner, revision = split_revision(name)
        stored = hub_cache() / f"models--{owner.replace('/', '--')}"
        with suppress(OSError):  # no branch or tag that was fetched: a commit, or nothing
            revision = (stored / "refs" / revision).read_text().strip()
        folder = stored / "snapshots" / revision
    return folder if (folder / marker).is_file() else None


def hub_cache() -> Path:
    """Return the folder where huggingface_hub keeps what it fetched, by the variables that it reads."""
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or f"{home}/huggingface"
    return Path(os.environ.get("HF_HUB_CACHE") or f"{home}/hub").expanduser()


def has_weights(folder: Path) -> bool:
    """Return whether a checkpoint or adapter that is here has its weights, all shards of them."""
    if list(folder.glob("adapter_model.*")):
        return True
    indexes = list(folder.glob("*.index.json"))
    shards = {name for index in indexes for name in json.loads(index.read_text())["weight_map"].values()}
    whole = [*folder.glob("model.safetensors"), *folder.glob("pytorch_model.bin")]
    return bool(whole) or (bool(shards) and all((folder / name).is_file() for name in shards))


def checkpoint_digest(name: str) -> str:
    """Return the digest of a checkpoint that is here: weights, config and tokenizer."""
    local_folder.cache_clear()
    return file_digest((local_folder(name, "config.json") or Path(name)) / "config.json")
