"""Where a checkpoint lies on this machine: a folder, or a hub id in the local cache. No library, since plans ask."""

import os
from functools import cache
from pathlib import Path

from projected_grpo.digests import file_digest


@cache
def local_folder(name: str, marker: str) -> Path | None:
    """Return the folder of a checkpoint by folder or hub id; None where it (or its file `marker`) is not here.

    Of a hub id it is the revision that is in the cache: what is here stays what is used until somebody fetches
    another.
    """
    folder = Path(name)
    if not folder.is_dir():
        stored = hub_cache() / f"models--{name.replace('/', '--')}"
        try:
            folder = stored / "snapshots" / (stored / "refs" / "main").read_text().strip()
        except OSError:
            return None
    return folder if (folder / marker).is_file() else None


def hub_cache() -> Path:
    """Return the folder where huggingface_hub keeps what it fetched, by the variables that it reads."""
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or f"{home}/huggingface"
    return Path(os.environ.get("HF_HUB_CACHE") or f"{home}/hub").expanduser()


def checkpoint_digest(name: str) -> str:
    """Return the digest of a checkpoint that is here: weights, config and tokenizer."""
    local_folder.cache_clear()
    return file_digest((local_folder(name, "config.json") or Path(name)) / "config.json")
