"""Whether what is asked for is what there is: a rule's job as planned now against the record of its outputs.

Snakemake compares times alone, so the plan speaks to it in times. A job whose record says otherwise than the plan
gets one more input, a file in `.snakemake/changed` named after the reason and newer than everything. Where the
record agrees, outputs get back the time at which they were finished: a touched or copied file is no newer than it
was. Both are decided anew by every call, so a dry run leaves nothing behind.
"""

import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from projected_grpo import records
from projected_grpo.digests import file_digest, one_digest
from projected_grpo.records import Unusable

MARKS = Path(".snakemake") / "changed"
SOON = 60.0  # seconds within which Snakemake touches what a job has finished
LONG_AGO = 1e9  # older than every file of a pipeline


@dataclass(frozen=True)
class Asked:
    """A job as planned: its files in the rule's order, its settings as `records.canonical` text, its code's hash."""

    outputs: Sequence[str]
    inputs: Sequence[str]
    settings: str
    code: str | None
    benchmark: str | None = None


def reason(asked: Asked, results: str) -> str | None:
    """Return why a job with outputs must run again: `record`, `code`, `settings`, `inputs`, or None."""
    _leave_future(asked.outputs)
    path: Any  # of a record, then of an input
    try:
        for path in records.record_paths(asked.outputs, results):
            record = records.read(path)
    except Unusable:
        return "record"
    for output in asked.outputs:
        if records.relative(output, results).startswith("..") and not _intact(output, record, results):
            return "record"  # outside of the results folder another config may write the same file
    if record["code"] != asked.code:
        return "code"
    if json.loads(asked.settings) != record["settings"]:
        return "settings"
    known = [digest for _, digest in record["inputs"]]
    if len(known) != len(asked.inputs):
        return "inputs"
    for path, digest in zip(asked.inputs, known, strict=True):
        if _digest(path, results) not in (digest, None):
            return "inputs"
    _restore_times(record, asked, results)
    return None


def mark(why: str) -> str:
    """Return the file that stands for a reason: newer than everything, and never twice the same."""
    return str(_mark(why, os.getpid()))


@cache
def _mark(why: str, process: int) -> Path:
    path = MARKS / why
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{process} {time.time_ns()}\n")
    return path


@cache
def _digest(path: str, results: str) -> str | None:
    """Return the digest of an input: by the record of what the pipeline made, of the file itself otherwise.

    None where that decides nothing: its maker has no usable record, or it is not there, and will be made.
    """
    try:
        record = records.find(path, results)
    except Unusable:
        return None
    if record is not None:
        return records.expected(path, record, results)
    return file_digest(path) if os.path.exists(path) else None


def _leave_future(outputs: Sequence[str]) -> None:
    """Make outputs whose time lies in the future old: a clock was set back, and newer than they nothing can be."""
    for output in outputs:
        if _time(output) > time.time() + 1:
            _set_time(_carrier(output), LONG_AGO)


def _carrier(output: str) -> str:
    """Return the file whose time Snakemake takes for that of an output."""
    return os.path.join(output, ".snakemake_timestamp") if os.path.isdir(output) else output


def _time(output: str) -> float:
    """Return the time of an output as Snakemake takes it; LONG_AGO where it is not there."""
    try:
        return os.stat(_carrier(output)).st_mtime
    except OSError:
        return LONG_AGO


def _moment(record: dict, results: str) -> float:
    """Return when a job finished; where the clock was set back since, the newest of what it was made of."""
    if record["finished"] <= time.time():
        return record["finished"]
    inputs = (os.path.normpath(os.path.join(results, name)) for name, _ in record["inputs"])
    return max((_made(path, results) for path in inputs), default=LONG_AGO)


@cache
def _made(path: str, results: str) -> float:
    try:
        record = records.find(path, results)
    except Unusable:
        return LONG_AGO
    if record is not None:
        return _moment(record, results)
    return _time(path) if _time(path) <= time.time() else LONG_AGO


def _restore_times(record: dict, asked: Asked, results: str) -> None:
    finished = _moment(record, results)
    for output in asked.outputs:
        carrier = _carrier(output)
        try:
            late = os.stat(carrier).st_mtime - finished
        except OSError:
            continue
        if abs(late) < 1e-3:
            continue
        if not 0 < late < SOON and not _intact(output, record, results):
            continue  # newer than what was made of it: that is planned, and its job says what is wrong
        inside = [os.path.join(folder, name) for folder, _, names in os.walk(output) for name in names]
        for path in {carrier, *inside}:
            _set_time(path, finished)
    if asked.benchmark and os.path.exists(asked.benchmark):
        _set_time(asked.benchmark, finished)


def _set_time(path: str, finished: float) -> None:
    with suppress(OSError):  # another's results, or read-only ones: times stay as they are
        os.utime(path, (finished, finished))


def _intact(output: str, record: dict, results: str) -> bool:
    """Return whether an output is still what its record says; else print so, once for each file."""
    named = records.relative(output, results)
    for file, digest in record["outputs"].items():
        if file == named or file.startswith(f"{named}/"):
            path = Path(os.path.normpath(os.path.join(results, file)))
            if not path.exists() or one_digest(path) != digest:
                print(
                    f"warning: {path}: damaged or edited, not what rule {record['rule']} wrote",
                    file=sys.stderr,
                )
                return False
    return True
