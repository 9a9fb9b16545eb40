"""Files that are either whole or absent: atomic writes, JSON lines and deterministic gzip."""

import gzip
import io
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from projected_grpo.errors import UserError


@contextmanager
def atomic(path: str | os.PathLike) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success fsync and rename it there, on failure remove it."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except OSError as error:
        if error.errno == 28:
            raise UserError(f"{path}: the disk is full, nothing was written under this name") from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


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
            binary = gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0, compresslevel=6)
        else:
            binary = raw
        with io.TextIOWrapper(binary, encoding="utf-8") as file:
            for row in rows:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")


def read_jsonl(path: str | os.PathLike) -> Iterator[dict]:
    """Yield the objects of a JSON-lines file (`.gz` by suffix).

    Raises UserError that names file and line on anything else than one object a line.
    """
    opener = gzip.open if str(path).endswith(".gz") else open
    number = 0
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise UserError(f"{path}:{number}: expected a JSON object, found {type(row).__name__}")
                yield row
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file") from error
    except json.JSONDecodeError as error:
        raise UserError(f"{path}:{number}: not JSON ({error.msg})") from error
    except (EOFError, gzip.BadGzipFile, UnicodeDecodeError) as error:
        raise UserError(f"{path}:{number + 1}: damaged file ({error})") from error
