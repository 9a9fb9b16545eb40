"""Content of files as short hashes: what tells a damaged, edited or exchanged file from the one that was made.

A file over 64 MiB is hashed once: its digest stands in `.snakemake/digests` with its size, times and inode, as long
as those stay. Smaller ones are hashed whenever it matters.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from projected_grpo.errors import UserError
from projected_grpo.files import write_text

LARGE = 64 << 20
CACHE = Path(".snakemake") / "digests"
# What reading one may need.
CHECKPOINT_FILES = ("*.json", "*.safetensors", "*.jinja", "*.txt", "*.model", "*.bin")
MODEL = ("config.json", "model.safetensors", "adapter_config.json", "adapter_model.safetensors")


def file_digest(path: str | os.PathLike) -> str:
    """Return 16 hex digits of the sha256 of a file, or of the names and contents of all files in a folder."""
    path = Path(path)
    return combined((file.name, one_digest(file)) for file in parts(path))


def combined(named: Iterable[tuple[str, str]]) -> str:
    """Return one digest for the (name, digest) pairs of what belongs together; that of a single file as it is."""
    pairs = sorted(named)
    if len(pairs) == 1:
        return pairs[0][1]
    return hashlib.sha256(json.dumps(pairs).encode()).hexdigest()[:16]


def parts(path: Path) -> list[Path]:
    """Return the files that `path` stands for: a folder's, a checkpoint's, a pool's, or itself alone."""
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.is_file() and not file.name.startswith("."))
    return sorted(_siblings(path)) or [path]


def _siblings(path: Path) -> Iterator[Path]:
    patterns = (
        CHECKPOINT_FILES if path.name in MODEL else ["*.jsonl*", "pool.json"] * (path.name == "pool.json")
    )
    for pattern in patterns:
        yield from (file for file in path.parent.glob(pattern) if not file.name.startswith("."))


def belongs(file: str, to: str) -> bool:
    """Return whether `file` is one of the parts of `to`, by their names alone."""
    folder, name = os.path.split(to)
    if file == to or file.startswith(f"{to}/"):
        return True
    return os.path.dirname(file) == folder and (name in MODEL or name == "pool.json")


def one_digest(path: Path) -> str:
    """Return the digest of one file, whatever else it stands for. Raises UserError where it cannot be read."""
    try:
        stat = path.stat()
        if stat.st_size <= LARGE:
            return _hashed(path)
        version = [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]
        kept = CACHE / hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:32]
        try:
            *known, digest = json.loads(kept.read_text())
            if known == version:
                return digest
        except (OSError, ValueError):
            pass  # none yet, or damaged: hashed again
        digest = _hashed(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from error
    if CACHE.parent.is_dir():
        with suppress(OSError):  # costs time alone
            write_text(kept, json.dumps([*version, digest]))
    return digest


def _hashed(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


# --- what was planned ---

PLANNED = "PGRPO_PLANNED"  # in the environment of all jobs of a run: path -> digest
_expected: dict[str, str] = {}


def of_value(value: object) -> str:
    """Return the digest of parsed content, whatever its keys are: layout and comments leave it as it is."""
    return hashlib.sha256(repr(value).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def announce(planned: dict[str, str]) -> None:
    """Say to all processes that this one starts what files hold; `check_planned` there holds them to it."""
    os.environ[PLANNED] = json.dumps(planned)


def expect(path: str | os.PathLike, digest: str) -> None:
    """Say what a file held when this process was planned, by whatever hash its readers take."""
    _expected[os.path.abspath(path)] = digest


def check_planned(path: str | os.PathLike, digest: str) -> None:
    """Raise UserError where a file that is read holds something else than when this process was planned."""
    announced = json.loads(os.environ.get(PLANNED, "{}")).get(str(path), digest)
    if _expected.get(os.path.abspath(path), announced) != digest:
        raise UserError(f"{path}: changed while this job ran; type the same command again")
