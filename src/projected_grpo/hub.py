"""Where a checkpoint lies on this machine; no torch, since the plan asks."""

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
    if folder.is_dir():
        return folder if (folder / marker).is_file() else None
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(name, marker)
    except HFValidationError:
        return None
    return Path(found).parent if isinstance(found, str) else None


def checkpoint_digest(name: str) -> str:
    """Return the digest of a checkpoint that is here: weights, config and tokenizer."""
    local_folder.cache_clear()
    return file_digest((local_folder(name, "config.json") or Path(name)) / "config.json")
