"""Curves of finished runs in trackio's local store, where `trackio show` draws them; the Parquet file stays the record.

trackio is the user's to install, and is imported here alone; the config's check says so where it is missing.
"""

import contextlib
import io
import math
from collections.abc import Iterable
from pathlib import Path

from projected_grpo.files import read_json
from projected_grpo.parquet import read_parquet


def project_of(results: str) -> str:
    """Return the project's name for a folder of results: that of the default one is the pipeline's own."""
    name = Path(results).name
    return "projected_grpo" if name == "results" else f"projected_grpo-{name}"


def write_runs(folders: Iterable[Path], project: str) -> int:
    """Write the runs in `folders` that the project lacks, or holds as they were made before; return how many.

    folders: of rule `grpo`, or where it will make them. Each numeric column of steps.parquet becomes a curve, run.json
    the run's config. Raises ImportError without trackio.
    """
    import trackio

    held = {}
    with contextlib.suppress(ValueError):  # no such project yet
        held = {run.name: run for run in trackio.Api().runs(project)}
    written = 0
    with contextlib.redirect_stdout(io.StringIO()):  # several lines of greeting a run
        for folder in folders:
            if not (folder / "run.json").exists():
                continue
            record = read_json(folder / "run.json")
            old = held.get(folder.name)
            if old and (old.config or {}).get("digest") == record["digest"]:
                continue
            if old:
                old.delete()
            _write(trackio, project, folder, record)
            written += 1
    return written


def _write(trackio, project: str, folder: Path, record: dict) -> None:
    trackio.init(project=project, name=folder.name, config=record, embed=False)
    for row in read_parquet(folder / "steps.parquet").to_dict("records"):
        step = row.pop("step")
        numbers = {
            name: value
            for name, value in row.items()
            if isinstance(value, int | float) and math.isfinite(value)
        }
        trackio.log(numbers, step=step)
    trackio.finish()
