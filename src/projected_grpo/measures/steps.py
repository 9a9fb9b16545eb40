"""What the per-step rows of a run may hold: which columns, numbers in which range, null at which steps."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa

from projected_grpo.cells.cell import Cell
from projected_grpo.errors import UserError
from projected_grpo.parquet import read_arrow
from projected_grpo.training.ratio import RATIO_EDGES

Steps = dict[str, np.ndarray]  # column -> its values by step

RATES = ("hack_s", "exploit_s", "solve_s", "compile_s")
ALIGNED = ("cin", "cin_s", "cin_t", "cout", "cout_update")  # shares of a gradient along the basis
DIAGNOSTICS = (*ALIGNED, "cin_null", "fired", "delta_norm")
RATIOS = ("ratio_mean", "ratio_clip_low", "ratio_clip_high")
NUMBERS = (*RATES, *DIAGNOSTICS, *RATIOS, "basis_overlap")
UNBOUNDED = ("delta_norm", "ratio_mean")  # at least 0; everything else is a share
ROUNDING = 1e-3  # a share computed from float32 vectors may exceed 1 by less


class Incomplete(Exception):
    """A run that does not count: it is absent or has not logged all its steps."""


def per_mode(columns: Iterable[str]) -> list[str]:
    """Return the columns with the student's hack rate on one loophole each."""
    return [name for name in columns if name.startswith("hack_") and name not in ("hack_s", "hack_t")]


def read_steps(path: Path, cell: Cell) -> Steps:
    """Read and check a run's `steps.parquet`; return the columns that tables and figures are made of.

    `[steps]` floats each, NaN where a step has nothing to measure; `ratio_hist` is `[steps, bins]` counts.

    Raises UserError with the path on a damaged file and on rows that no run writes, Incomplete where the last ones
    are missing.
    """
    # Arrow's columns, not a data frame: the histograms alone take pandas longer than all the rest.
    table = read_arrow(path)
    modes = per_mode(table.column_names)
    held_out = [f"hack_{cell.setting.held_out_mode}"] if cell.setting.held_out_mode else []
    for column in ("step", *NUMBERS, "ratio_hist", *held_out):
        if column not in table.column_names:
            raise UserError(f"{path}: no column {column!r}; delete the run's folder to remake it")
    if not len(table):
        raise Incomplete(f"0 of {cell.steps} steps")
    values = {column: _numbers(table[column], column, path) for column in ("step", *NUMBERS, *modes)}
    steps = values["step"]
    if np.isnan(steps).any() or steps[0] not in (0, 1) or not (np.diff(steps) == 1).all():
        raise UserError(f"{path}: column 'step' does not count up by one from 0 or 1")
    allowed = _nulls(values, modes, cell.setting.knob("refresh"))
    for column in (*NUMBERS, *modes):
        numbers = values[column]
        missing = np.isnan(numbers) & ~allowed[column]
        if missing.any():
            raise UserError(f"{path}: column {column!r} is empty at step {int(steps[missing][0])}")
        top = np.inf if column in UNBOUNDED else 1 if column in (*RATES, *modes) else 1 + ROUNDING
        if ((numbers < 0) | (numbers > top) | np.isinf(numbers)).any():
            raise UserError(f"{path}: column {column!r} has a value outside 0 ... {top:.0f}")
    values["ratio_hist"] = _counts(table["ratio_hist"], path)
    if (np.isnan(values["ratio_hist"][:, 0]) & ~np.isnan(values["ratio_mean"])).any():
        raise UserError(f"{path}: column 'ratio_hist' is empty at a step that has a mean ratio")
    if len(steps) > cell.steps:
        raise UserError(f"{path}: {len(steps)} rows, but the cell has {cell.steps} steps")
    if len(steps) < cell.steps:
        raise Incomplete(f"{len(steps)} of {cell.steps} steps")
    return values


def _numbers(column: pa.ChunkedArray, name: str, path: Path) -> np.ndarray:
    kind = column.type
    if column.null_count == len(column):
        return np.full(len(column), np.nan)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise UserError(f"{path}: column {name!r} is {kind}, not numbers")
    return column.to_numpy().astype(float)


def _counts(column: pa.ChunkedArray, path: Path) -> np.ndarray:
    """Return histograms as `[steps, bins]` floats, NaN in a step without one."""
    counts = np.full((len(column), len(RATIO_EDGES) + 1), np.nan)
    for row, found in zip(counts, column.to_pylist(), strict=True):
        if found is None:
            continue
        found = np.asarray(found)
        if found.shape != row.shape or found.dtype.kind not in "iuf":
            raise UserError(f"{path}: column 'ratio_hist' has a step of other than {len(row)} counts")
        row[:] = found
    return counts


def _nulls(values: Steps, modes: list[str], refresh: int) -> Steps:
    """Return by column at which steps a null is one that a run writes, `[steps]` booleans each.

    A null says that a step has nothing to measure, so columns with one reason are null together.
    """
    null = {name: np.isnan(numbers) for name, numbers in values.items()}

    def together(*names: str) -> np.ndarray:
        return np.logical_and.reduce([null[name] for name in names])

    nowhere = np.zeros(len(values["step"]), dtype=bool)
    allowed = dict.fromkeys(null, nowhere)
    # A step whose problems all lack hidden tests has neither a solve nor an exploit rate.
    allowed |= dict.fromkeys(("solve_s", "exploit_s"), together("solve_s", "exploit_s"))
    # A loophole may have no prompt in a step, but not all of them.
    if modes:
        allowed |= dict.fromkeys(modes, ~together(*modes))
    # Without any advantage no gradient points anywhere; the optimizer's momentum may still move.
    idle = together("cin", "cin_s", "cin_t", "cout")
    allowed |= dict.fromkeys(("cin", "cout", "cout_update"), idle)
    allowed |= {"cin_s": idle | ~null["cin_t"], "cin_t": idle | ~null["cin_s"]}
    # A run without a basis measures nothing along one, from its first step to its last.
    unmeasured = together(*ALIGNED, "cin_null", "fired").all()
    allowed |= dict.fromkeys(("cin_null", "fired"), np.full_like(nowhere, unmeasured))
    # Teacher tokens with stored log-probs: some or none.
    allowed |= dict.fromkeys(RATIOS, together(*RATIOS))
    allowed["basis_overlap"] = values["step"] % refresh != 0 if refresh else ~nowhere
    return allowed
