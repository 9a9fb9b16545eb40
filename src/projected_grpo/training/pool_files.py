"""The files of a teacher pool's folder, without the libraries that reading their rows takes."""

from pathlib import Path

from projected_grpo.digests import file_digest
from projected_grpo.errors import UserError
from projected_grpo.files import read_json


def found_files(folder: str | Path) -> list[Path]:
    """Return the JSON-lines files of `folder` in order; none where there is no such folder."""
    return sorted(Path(folder).glob("[!.]*.jsonl*"))


def pool_files(folder: Path) -> list[Path]:
    """Return a pool's files in order: those that its `pool.json` names, intact, or all where it has none.

    Raises UserError where there is none, or one is not as `pool.json` has it.
    """
    manifest = folder / "pool.json"
    if not manifest.exists():
        paths = found_files(folder)
        if not paths:
            raise UserError(f"{folder}: no step_NNN.jsonl.gz in this teacher pool")
        return paths
    digests = read_json(manifest)
    for name, digest in digests.items():
        path = folder / name
        if not path.exists() or file_digest(path) != digest:
            why = "not the file that was made" if path.exists() else "no such file"
            raise UserError(f"{path}: {why}; delete {manifest} to make the pool anew")
    return [folder / name for name in sorted(digests)]
