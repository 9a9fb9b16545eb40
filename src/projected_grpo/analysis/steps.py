"""What the per-step rows of a run may hold: which columns, numbers in which range, null at which steps."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from projected_grpo.errors import UserError
from projected_grpo.experiment.cell import Cell

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


def check_steps(frame: pd.DataFrame, path: Path, cell: Cell) -> dict[str, np.ndarray]:
    """Return the columns that tables are made of, `[steps]` floats each, NaN where a step has nothing to measure.

    Raises UserError with the path on rows that no run writes, Incomplete where the last ones are missing.
    """
    modes = per_mode(frame)
    held_out = [f"hack_{cell.setting.held_out_mode}"] if cell.setting.held_out_mode else []
    for column in ("step", *NUMBERS, "ratio_hist", *held_out):
        if column not in frame:
            raise UserError(f"{path}: no column {column!r}; delete the run's folder to remake it")
    names, types = ["step", *NUMBERS, *modes], frame.dtypes
    for column in names:
        if types[column].kind not in "iuf" and not frame[column].isna().all():
            raise UserError(f"{path}: column {column!r} is {types[column]}, not numbers")
    if frame.empty:
        raise Incomplete(f"0 of {cell.steps} steps")
    steps, *numbers = frame[names].to_numpy(dtype=float).T
    if len(np.unique(steps)) != len(steps):
        raise UserError(
            f"{path}: column 'step' repeats {int(frame['step'][frame['step'].duplicated()].iloc[0])}"
        )
    if steps[0] not in (0, 1) or not (np.diff(steps) == 1).all():
        raise UserError(f"{path}: column 'step' does not count up by one from 0 or 1")
    values = dict(zip(names[1:], numbers, strict=True))
    allowed = _nulls(values, modes, steps, cell.setting.refresh)
    for column, numbers in values.items():
        missing = np.isnan(numbers) & ~allowed[column]
        if missing.any():
            raise UserError(f"{path}: column {column!r} is empty at step {int(steps[missing][0])}")
        top = np.inf if column in UNBOUNDED else 1 if column in (*RATES, *modes) else 1 + ROUNDING
        if ((numbers < 0) | (numbers > top) | np.isinf(numbers)).any():
            raise UserError(f"{path}: column {column!r} has a value outside 0 ... {top:.0f}")
    if (values["exploit_s"] > values["hack_s"] + ROUNDING).any():
        raise UserError(f"{path}: column 'exploit_s' exceeds 'hack_s', of which it is a part")
    if (frame["ratio_hist"].isna().to_numpy() & ~np.isnan(values["ratio_mean"])).any():
        raise UserError(f"{path}: column 'ratio_hist' is empty at a step that has a mean ratio")
    if len(frame) > cell.steps:
        raise UserError(f"{path}: {len(frame)} rows, but the cell has {cell.steps} steps")
    if len(frame) < cell.steps:
        raise Incomplete(f"{len(frame)} of {cell.steps} steps")
    return values


def _nulls(values: dict[str, np.ndarray], modes: list[str], steps: np.ndarray, refresh: int) -> dict:
    """Return by column at which steps a null is one that a run writes, `[steps]` booleans each.

    A null says that a step has nothing to measure, so columns with one reason are null together.
    """
    null = {name: np.isnan(numbers) for name, numbers in values.items()}

    def together(*names: str) -> np.ndarray:
        return np.logical_and.reduce([null[name] for name in names])

    nowhere = np.zeros(len(steps), dtype=bool)
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
    allowed |= dict.fromkeys(("cin_null", "fired"), np.full(len(steps), unmeasured))
    # Teacher tokens with stored log-probs: some or none.
    allowed |= dict.fromkeys(RATIOS, together(*RATIOS))
    allowed["basis_overlap"] = steps % refresh != 0 if refresh else ~nowhere
    return allowed
