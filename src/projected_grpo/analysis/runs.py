"""Read run folders: a run counts with all its steps or not at all; a damaged file is an error."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from projected_grpo.analysis import stats
from projected_grpo.errors import UserError
from projected_grpo.experiment.cell import Cell

REQUIRED = ("step", "hack_s", "exploit_s", "solve_s")
RATES = ("hack_s", "exploit_s", "solve_s")
# What a table shows of a run beside its rates, where the run has it. All of them are last-five-step means.
DIAGNOSTICS = ("cin", "cin_s", "cin_t", "cin_null", "cout", "cout_update", "fired", "delta_norm")
FINAL = ("hack_kept", "solve_kept", "hack_ablated", "solve_ablated")


class Incomplete(Exception):
    """A run that does not count: it is absent or has not logged all its steps."""


@dataclass(frozen=True)
class Run:
    """One finished run: its cell, its per-step rows and what `run.json` says about it."""

    cell: Cell
    steps: pd.DataFrame = field(repr=False)
    info: dict[str, Any] = field(repr=False)

    @cached_property
    def measures(self) -> dict[str, float]:
        """Return the run's numbers: rates (last-five-step means), final rates and diagnostics that it has."""
        values = {}
        names = {rate: rate.removesuffix("_s") for rate in RATES}
        per_mode = [name for name in self.steps if re.fullmatch(r"hack_(?!s$|t$)\w+", name)]
        names |= {name: name for name in per_mode}
        names |= {name: name for name in DIAGNOSTICS if name in self.steps}
        last = self.steps.tail(stats.LAST)[list(names)].to_numpy(dtype=float)
        for name, tail in zip(names.values(), last.T, strict=True):
            tail = tail[~np.isnan(tail)]  # a mode without a prompt in a step, a diagnostic of another arm
            if tail.size:
                values[name] = stats.last_mean(tail)
        final = self.info.get("final") or {}
        values |= {name: float(final[name]) for name in FINAL if final.get(name) is not None}
        if self.cell.setting.held_out_mode:
            held_out = f"hack_{self.cell.setting.held_out_mode}"
            if held_out not in values:
                raise UserError(
                    f"{self.cell.id}: steps.parquet has no {held_out}, the rate on the held-out mode"
                )
            values["hack_heldout"] = values[held_out]
        return values


def read_parquet(path: Path) -> pd.DataFrame:
    """Read a Parquet file. Raises UserError with the path where it is truncated or no Parquet."""
    try:
        return pq.ParquetFile(path).read(use_threads=False).to_pandas()
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file") from error
    except (OSError, ValueError) as error:  # pyarrow's errors are ValueErrors
        raise UserError(
            f"{path}: unreadable as Parquet ({str(error).splitlines()[0]}); delete it to remake it"
        ) from error


def read_info(path: Path) -> dict[str, Any]:
    """Read a `run.json`. Raises UserError with the path on anything but a JSON object."""
    try:
        info = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not JSON ({error}); delete its folder to remake the run") from error
    if not isinstance(info, dict):
        raise UserError(f"{path}: expected a JSON object, found {type(info).__name__}")
    return info


def check_steps(frame: pd.DataFrame, path: Path, steps: int) -> None:
    """Raise UserError on per-step rows that no run writes, Incomplete where the last ones are missing."""
    for column in REQUIRED:
        if column not in frame:
            raise UserError(f"{path}: no column {column!r}; needed: {', '.join(REQUIRED)}")
        if not pd.api.types.is_numeric_dtype(frame[column]) and not frame[column].isna().all():
            raise UserError(f"{path}: column {column!r} is {frame[column].dtype}, not numbers")
    if frame.empty:
        raise Incomplete(f"0 of {steps} steps")
    numbers = frame["step"].to_numpy(dtype=float)
    if len(np.unique(numbers)) != len(numbers):
        raise UserError(
            f"{path}: column 'step' repeats {int(frame['step'][frame['step'].duplicated()].iloc[0])}"
        )
    if numbers[0] not in (0, 1) or not (np.diff(numbers) == 1).all():
        raise UserError(f"{path}: column 'step' does not count up by one from 0 or 1")
    # A step whose problems all lack hidden tests has neither a solve nor an exploit rate.
    untested = frame[["solve_s", "exploit_s"]].isna().all(axis=1).to_numpy()
    for column in RATES:
        values = frame[column].to_numpy(dtype=float)
        missing = np.isnan(values) & ~(untested & (column != "hack_s"))
        if missing.any():
            raise UserError(f"{path}: column {column!r} is empty at step {int(numbers[missing][0])}")
        if ((values < 0) | (values > 1)).any():
            raise UserError(f"{path}: column {column!r} has a value outside 0 ... 1")
    if len(frame) > steps:
        raise UserError(f"{path}: {len(frame)} rows, but the cell has {steps} steps")
    if len(frame) < steps:
        raise Incomplete(f"{len(frame)} of {steps} steps")


def load_run(results: Path, cell: Cell) -> Run:
    """Read `results/grpo/{cell}/`.

    Raises Incomplete where the run is absent or short (the caller leaves it out and names it), UserError with
    the path where a file is damaged or edited by hand.
    """
    folder = Path(results) / "grpo" / cell.id
    path = folder / "steps.parquet"
    if not path.exists():
        raise Incomplete("missing")
    frame = read_parquet(path)
    check_steps(frame, path, cell.steps)
    info = read_info(folder / "run.json") if (folder / "run.json").exists() else {}
    if cell.setting.final_eval and not info.get("final"):
        raise Incomplete("no final evaluation in run.json")
    return Run(cell, frame, info)


Loaded = tuple[dict[str, Run], dict[str, str]]


def load_runs(results: Path, cells: Iterable[Cell]) -> Loaded:
    """Read many runs: (run by cell id, why by id of each cell that is left out)."""
    runs, left_out = {}, {}
    for cell in cells:
        try:
            runs[cell.id] = load_run(results, cell)
        except Incomplete as reason:
            left_out[cell.id] = str(reason)
    return runs, left_out
