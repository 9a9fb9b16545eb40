"""Files that are either whole or absent: atomic writes, JSON lines and deterministic gzip."""

import errno
import glob
import gzip
import io
import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from projected_grpo.errors import UserError

FULL = (errno.ENOSPC, errno.EDQUOT)


def full_disk(error: Exception) -> bool:
    """Return whether `error` says that disk or quota is full; libraries wrap the system's error in their own."""
    return getattr(error, "errno", None) in FULL or any(f"os error {n})" in str(error) for n in FULL)


@contextmanager
def _beside(path: Path, make: Callable[[str], Path]) -> Iterator[Path]:
    """Yield what `make` makes under this process's prefix beside `path`; what is left of it goes at the end.

    What dead processes left there goes first. Raises UserError that names `path` where the disk is full; some
    libraries drop the system's error altogether, so free space is looked at, too.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".{glob.escape(path.name)}.*"):
        pid = left.name.removeprefix(f".{path.name}.").split(".")[0]
        if pid.isdecimal() and not Path("/proc", pid).exists():
            _remove(left)
    temporary = None
    try:
        temporary = make(f".{path.name}.{os.getpid()}.")
        yield temporary
    except Exception as error:
        if full_disk(error) or (not isinstance(error, UserError) and os.statvfs(path.parent).f_bavail == 0):
            raise UserError(f"{path}: the disk is full, nothing was written under this name") from error
        raise
    finally:
        if temporary:
            _remove(temporary)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def atomic(path: str | os.PathLike) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success fsync and rename it there, on failure remove it.

    Raises UserError that names `path` where the disk is full.
    """
    path = Path(path)

    def make(prefix: str) -> Path:
        handle, name = tempfile.mkstemp(prefix=prefix, suffix=path.suffix, dir=path.parent)
        os.close(handle)
        return Path(name)

    with _beside(path, make) as temporary:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)


@contextmanager
def atomic_folder(path: str | os.PathLike) -> Iterator[Path]:
    """Yield a temporary folder beside `path` that replaces it on success: readers never see half a checkpoint.

    Raises UserError that names `path` where the disk is full.
    """
    path = Path(path)
    with _beside(path, lambda prefix: Path(tempfile.mkdtemp(prefix=prefix, dir=path.parent))) as temporary:
        yield temporary
        temporary.chmod(0o755)
        if path.exists():
            shutil.rmtree(path)
        temporary.rename(path)


def write_text(path: str | os.PathLike, text: str) -> None:
    """Write `text` to `path` atomically."""
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: str | os.PathLike, value: Any) -> None:
    """Write `value` as indented JSON, atomically."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_jsonl(path: str | os.PathLike, rows: Iterable[dict]) -> None:
    """Write one JSON object a line, gzipped where the name ends in `.gz`; equal rows give equal bytes."""
    with atomic(path) as temporary, open(temporary, "wb") as raw:
        if str(path).endswith(".gz"):
            binary: Any = gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0, compresslevel=6)
        else:
            binary = raw
        with io.TextIOWrapper(binary, encoding="utf-8") as file:
            for row in rows:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")


def read_json(path: str | os.PathLike) -> dict:
    """Return the object that a JSON file holds. Raises UserError with the path on anything else."""
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise UserError(f"{path}: not JSON ({error})") from error
    if not isinstance(value, dict):
        raise UserError(f"{path}: expected a JSON object, found {type(value).__name__}")
    return value


def read_jsonl(path: str | os.PathLike) -> Iterator[dict]:
    """Yield the objects of a JSON-lines file (`.gz` by suffix). Raises UserError as `numbered_rows` does."""
    for _, row in numbered_rows(path):
        yield row


def numbered_rows(path: str | os.PathLike) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (`path:line`, object) of a JSON-lines file (`.gz` by suffix), blank lines left out.

    Raises UserError that names file, line and reason on anything else than one object a line, and on a damaged file: a
    checksum at its end is looked at when all rows are out, so what is made of them counts only then.
    """
    zipped = str(path).endswith(".gz")
    number = 0
    try:
        if zipped and os.path.isfile(path) and os.path.getsize(path) == 0:
            raise EOFError("it is empty")
        with (gzip.open if zipped else open)(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                row = json.loads(line.removeprefix(b"\xef\xbb\xbf"))
                if not isinstance(row, dict):
                    raise UserError(f"{path}:{number}: expected a JSON object, found {type(row).__name__}")
                yield f"{path}:{number}", row
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path}:{number + 1}: damaged gzip file ({error})") from error
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from error
    except RecursionError as error:
        raise UserError(f"{path}:{number}: nested too deeply") from error
    except ValueError as error:
        raise UserError(f"{path}:{number}: not JSON ({error})") from error
