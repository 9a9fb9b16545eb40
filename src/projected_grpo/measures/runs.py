"""Read run folders: a run counts with all its steps or not at all; a damaged file is an error."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from projected_grpo.cells.cell import Cell
from projected_grpo.errors import UserError
from projected_grpo.measures import stats
from projected_grpo.measures.steps import DIAGNOSTICS, RATES, Incomplete, Steps, per_mode, read_steps
from projected_grpo.records import read_sealed

# Rates after the last step, with the quarantine kept and ablated.
FINAL = ("hack_kept", "solve_kept", "hack_ablated", "solve_ablated")


@dataclass(frozen=True)
class Run:
    """One finished run: its cell, its columns by step (`steps.read_steps`), and what `run.json` says."""

    cell: Cell
    steps: Steps = field(repr=False)
    info: dict[str, Any] = field(repr=False)

    @cached_property
    def measures(self) -> dict[str, float]:
        """Return the run's numbers: rates (last-five-step means), final rates and diagnostics that it has."""
        values = {}
        for column in (*RATES, *per_mode(self.steps), *DIAGNOSTICS):
            tail = self.steps[column][-stats.LAST :]
            tail = tail[~np.isnan(tail)]  # a mode without a prompt in a step, a diagnostic of another arm
            if tail.size:
                values[column.removesuffix("_s") if column in RATES else column] = stats.last_mean(tail)
        for rate in ("hack_s", "solve_s"):
            start = float(self.steps[rate][0])  # sampled before the first update
            if not np.isnan(start):
                values[f"start_{rate.removesuffix('_s')}"] = start
        final = self.info.get("final") or {}
        values |= {name: float(final[name]) for name in FINAL if final.get(name) is not None}
        if self.cell.setting.held_out_mode:
            held_out = f"hack_{self.cell.setting.held_out_mode}"
            if held_out not in values:
                raise UserError(
                    f"{self.cell.id}: {held_out}, the rate on the held-out mode, is empty in its last "
                    f"{stats.LAST} steps"
                )
            values["hack_heldout"] = values[held_out]
        return values


def check_info(info: dict[str, Any], path: Path, cell: Cell) -> None:
    """Raise UserError where a `run.json` is another run's: of another cell, or made with other settings."""
    if info.get("cell") != cell.id:
        raise UserError(f"{path}: cell is {info.get('cell')!r}, its folder is that of {cell.id!r}")
    recorded, asked = _flat(info.get("settings")), _flat(json.loads(cell.params()))
    for key in sorted(recorded.keys() | asked.keys()):
        if recorded.get(key) != asked.get(key):
            raise UserError(
                f"{path}: settings{key} is {recorded.get(key)!r}, the config says {asked.get(key)!r}; "
                "make the run again, or undo the change of the config"
            )
    final = info.get("final")
    if final is not None and not isinstance(final, dict):
        raise UserError(f"{path}: final is {final!r}, allowed: a mapping of rates, or null")
    for name in FINAL:
        value = (final or {}).get(name)
        if final is not None and value is None and name.startswith("hack"):
            raise UserError(f"{path}: no final.{name}; delete the run's folder to remake it")
        number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
        if value is not None and not number:
            raise UserError(f"{path}: final.{name} is {value!r}, allowed: a number in 0 ... 1, or null")


def _flat(value: Any, key: str = "") -> dict[str, Any]:
    """Return `.key.key` -> value of nested mappings."""
    if not isinstance(value, dict):
        return {key: value}
    return {k: v for name, inner in value.items() for k, v in _flat(inner, f"{key}.{name}").items()}


def load_run(results: Path, cell: Cell) -> Run:
    """Read `results/grpo/{cell}/`.

    Raises Incomplete where the run is absent or short (the caller leaves it out and names it), UserError with
    the path where a file is damaged, edited by hand, or of a run with other settings.
    """
    folder = Path(results) / "grpo" / cell.id
    path, record = folder / "steps.parquet", folder / "run.json"
    if not path.exists():
        raise Incomplete("missing")
    held_out = cell.setting.held_out_mode
    if held_out and held_out not in cell.setting.modes:
        raise Incomplete(f"the pool has no problem of the held-out mode {held_out}")
    steps = read_steps(path, cell)
    if not record.exists():  # written last
        raise Incomplete("no run.json")
    info = read_sealed(record)
    check_info(info, record, cell)
    if cell.setting.final_eval and not info.get("final"):
        raise Incomplete("no final evaluation in run.json")
    return Run(cell, steps, info)


Loaded = tuple[dict[str, Run], dict[str, str]]


def of_cells(loaded: Loaded, cells: Iterable[Cell]) -> Loaded:
    """Return what was loaded of these cells alone, in their order."""
    return tuple({cell.id: found[cell.id] for cell in cells if cell.id in found} for found in loaded)


def load_runs(results: Path, cells: Iterable[Cell]) -> Loaded:
    """Read many runs: (run by cell id, why by id of each cell that is left out).

    Raises UserError where two runs of one model stand on different problems or teacher pools: nothing pairs them.
    """
    runs, left_out = {}, {}
    for cell in cells:
        try:
            runs[cell.id] = load_run(results, cell)
        except Incomplete as reason:
            left_out[cell.id] = str(reason)
    _check_inputs(results, runs)
    return runs, left_out


def _check_inputs(results: Path, runs: dict[str, Run]) -> None:
    first: dict[tuple[str, str], tuple[str, str]] = {}  # model, input -> its hash, the cell that has it
    for id, run in runs.items():
        for name in ("problems", "pool"):
            own = run.info.get("inputs", {}).get(name)
            known, other = first.setdefault((run.info.get("model"), name), (own, id))
            if own != known:
                raise UserError(
                    f"{Path(results, 'grpo', id, 'run.json')}: inputs.{name} is {own}, that of {other} is {known}; "
                    "runs of one model are paired, so make the older one again"
                )
