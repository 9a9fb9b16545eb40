"""What every job leaves beside its outputs: from what and by what they were made, with a digest of every file.

A record is a JSON file in `records/` of the results folder, under the name of the job's first output in each folder
that it writes to. It is the job's last act, so outputs without one are not finished. Jobs and commands that read a
file check it against its record; the plan (`plan.py`) compares records with what is asked for. A record carries a
digest of its own content.
"""

import hashlib
import json
import os
import platform
import socket
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from projected_grpo.digests import belongs, combined, file_digest, one_digest, parts
from projected_grpo.errors import UserError
from projected_grpo.files import read_json, write_json

FOLDER = "records"
PACKAGES = ("torch", "transformers", "peft", "numpy", "pandas", "snakemake")  # what numbers depend on
ROOT = Path(__file__).resolve().parents[2]


class Unusable(Exception):
    """A record that is absent, damaged or edited; the message says which."""


# --- what a record says ---


def canonical(settings: Mapping[str, Any], results: str) -> str:
    """Return settings as one stable text in which the results folder has no name: a moved tree is the same."""
    text = json.dumps(settings, sort_keys=True, default=str)
    for quote in ('"', '\\"'):  # in a text, and in a JSON text in it
        text = text.replace(f"{quote}{results}/", quote).replace(f"{quote}{results}{quote}", 2 * quote)
    return text


def circumstances() -> dict[str, Any]:
    """Return when, where, from which commit and with which versions this is."""
    return {
        "commit": commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": socket.gethostname(),
        "processor": processor(),
        "versions": versions(),
    }


def processor() -> str | None:
    """Return the model of this machine's processor: a kernel of another sums in another order (docs/substrate.md)."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine() or None


def versions() -> dict[str, str | None]:
    """Return the versions of Python and of the packages that numbers depend on; null where one is absent."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # an environment for tables needs no torch
            found[name] = None
    return found


@lru_cache(maxsize=1)
def commit() -> str:
    """Return the short commit id of this code, marked where the working tree differs from it."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(ROOT), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "--short=12", "HEAD") + (" with changes" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def seal(value: dict[str, Any]) -> dict[str, Any]:
    """Return `value` with a digest of its content, last."""
    content = {key: item for key, item in value.items() if key != "digest"}
    text = json.dumps(content, sort_keys=True)
    return {**content, "digest": hashlib.sha256(text.encode()).hexdigest()[:16]}


def read_sealed(path: str | os.PathLike) -> dict[str, Any]:
    """Return the object in a JSON file. Raises UserError where its digest, if it has one, is not its content's."""
    value = read_json(path)
    if "digest" in value and seal(value)["digest"] != value["digest"]:
        raise UserError(f"{path}: edited or damaged, its digest is another; `rm {path}` to make it anew")
    return value


# --- writing and finding ---


def relative(path: str | os.PathLike, results: str | os.PathLike) -> str:
    """Return the name of a file as records have it: as seen from the results folder."""
    return os.path.relpath(path, results)


def record_path(output: str | os.PathLike, results: str | os.PathLike) -> Path:
    """Return the record that lies under the name of `output`."""
    return Path(results, FOLDER, f"{_below(relative(output, results))}.json")


def _below(name: str) -> str:
    """Return a name as seen from the results folder as one below it."""
    return name.replace(f"..{os.sep}", "")


def record_paths(outputs: Iterable[str], results: str) -> list[Path]:
    """Return where a job with these outputs leaves its record: under the first one in each folder."""
    first: dict[str, str] = {}
    for output in outputs:
        first.setdefault(os.path.dirname(str(output)), str(output))
    return [record_path(output, results) for output in first.values()]


def write(record: dict[str, Any], outputs: list[str], results: str) -> None:
    """Write a record with the digests of everything that `outputs` stand for."""
    files = sorted({part for output in outputs for part in parts(Path(output))})
    digests = {relative(file, results): one_digest(file) for file in files}
    # Finished is when the digests are known: what reads these files starts later.
    sealed = seal({**record, "outputs": digests, "finished": datetime.now(UTC).timestamp()})
    for path in record_paths(outputs, results):
        write_json(path, sealed)


def read(path: Path) -> dict[str, Any]:
    """Return a record. Raises Unusable where it is absent, damaged or edited."""
    try:
        return _read(path, path.stat().st_mtime_ns)
    except FileNotFoundError as error:
        raise Unusable(f"{path}: no such record") from error


@lru_cache(maxsize=1024)
def _read(path: Path, version: int) -> dict[str, Any]:
    try:
        record = read_json(path)
        intact = seal(record)["digest"] == record.get("digest") and isinstance(record["outputs"], dict)
    except (UserError, KeyError) as error:
        raise Unusable(f"{path}: damaged ({error})") from error
    if not intact:
        raise Unusable(f"{path}: damaged or edited")
    # It lies under the name of one of its files (a folder's name has no suffix, and may hold none): put beside other
    # files, as where whole folders were exchanged, it is none.
    beside = str(path).rpartition(f"{FOLDER}{os.sep}")[2].removesuffix(".json")
    if Path(beside).suffix and beside not in map(_below, record["outputs"]):
        raise Unusable(f"{path}: the record of other files, first {min(record['outputs'])}")
    return record


@lru_cache(maxsize=4096)
def _in_folder(folder: Path, version: int) -> tuple[Path, ...]:
    return tuple(sorted(folder.glob("*.json")))


def find(path: str | os.PathLike, results: str | os.PathLike) -> dict[str, Any] | None:
    """Return the record of the job that made `path`; None where no record names it.

    Raises Unusable where the record that should is damaged.
    """
    named = relative(path, results)
    own = record_path(path, results)
    # A folder's own, too.
    for candidate in (own, *(Path(f"{parent}.json") for parent in list(own.parents)[:2])):
        if candidate.is_file():
            return read(candidate)
    try:
        neighbours = _in_folder(own.parent, own.parent.stat().st_mtime_ns)
    except OSError:
        return None
    broken = None
    for candidate in neighbours:
        try:
            record = read(candidate)
        except Unusable as error:
            broken = error
            continue
        if any(belongs(file, named) for file in record["outputs"]):
            return record
    if broken:
        raise broken
    return None


# --- checking ---


def expected(path: str | os.PathLike, record: dict[str, Any], results: str | os.PathLike) -> str:
    """Return the digest that `path` has by the record of the job that made it."""
    named = relative(path, results)
    made = [(os.path.basename(f), digest) for f, digest in record["outputs"].items() if belongs(f, named)]
    return combined(made)


def check(path: str | os.PathLike, results: str | os.PathLike, key: str | os.PathLike | None = None) -> str:
    """Return the digest of a file that is read; `key` is what to delete to have it made anew.

    Raises UserError, one line with the file and the command, where it is not as its record has it.
    """
    key = key or path
    again = f"to make it anew: `rm {'-r ' * Path(key).is_dir()}{key}`, then the same command again"
    try:
        record = find(path, results)
    except Unusable as error:
        raise UserError(f"{error}; {again}") from error
    if record is None:
        return file_digest(path)
    named = relative(path, results)
    made = {f: digest for f, digest in record["outputs"].items() if belongs(f, named)}
    here = {relative(part, results): part for part in parts(Path(path)) if part.exists()}
    for name in sorted(made.keys() | here.keys()):
        file = os.path.normpath(os.path.join(results, name))
        if name not in here:
            raise UserError(f"{file}: no such file, rule {record['rule']} made it; {again}")
        if name not in made:
            raise UserError(f"{file}: not made by rule {record['rule']}, whose folder this is; {again}")
        if one_digest(here[name]) != made[name]:
            raise UserError(f"{file}: damaged or edited, not what rule {record['rule']} wrote; {again}")
    return combined((os.path.basename(name), digest) for name, digest in made.items())


def check_read(*paths: str | os.PathLike) -> None:
    """Check files that are read outside of a job, against the records of the results tree that they lie in."""
    for path in map(Path, paths):
        for folder in path.resolve().parents:
            if (folder / FOLDER).is_dir():
                check(path.resolve(), folder, path)
                break
