"""The columns of a run's `steps.parquet`: what each says, within which range, null at which steps."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from projected_grpo.cells.cell import Cell
from projected_grpo.environment.levers import LOOPHOLES
from projected_grpo.errors import UserError
from projected_grpo.parquet import read_arrow
from projected_grpo.training.ratio import RATIO_EDGES

Steps = dict[str, np.ndarray]  # column -> its values by step
ROUNDING = 1e-3  # a share computed from float32 vectors may exceed 1 by less


@dataclass(frozen=True)
class Column:
    """A column that training writes. Tables and figures are made of those with a `top`, which are checked."""

    name: str
    about: str
    unit: str = "share"
    top: float | None = None  # largest value; the smallest is 0


S, FREE = 1 + ROUNDING, np.inf
COLUMNS = {
    column.name: column
    for column in (
        Column("step", "number of the step", "steps"),
        Column("hack_s", "student rollouts that hack", top=1),
        Column("exploit_s", "student rollouts that hack without a right solution", top=1),
        Column("solve_s", "student rollouts that pass all hidden tests", top=1),
        Column("compile_s", "student rollouts whose code compiles", top=1),
        *(Column(f"hack_{mode}", f"the same as hack_s, on prompts of {mode}", top=1) for mode in LOOPHOLES),
        Column("hack_t", "teacher rollouts that hack"),
        Column("solve_t", "teacher rollouts that pass all hidden tests"),
        Column("reward", "mean reward of the student's rollouts", "reward"),
        Column("loss", "GRPO loss", "loss"),
        Column("lr", "learning rate", "rate"),
        Column("grad_norm", "norm of the gradient before clipping", "norm"),
        Column("delta_norm", "|delta_S|", "norm", FREE),
        Column("delta_hack_norm", "|delta_S_hack|, the quarantine", "norm"),
        Column("quarantine_share", "the quarantine's share of the lengths of both steps (arm absorb)"),
        Column("trusted_share", "share of the gradient's length along the clean run's axes (arm trusted)"),
        Column("cin", "gradient along V, before the projection", top=S),
        Column("cin_s", "the same of the student's part of the gradient", top=S),
        Column("cin_t", "the same of the teacher's part", top=S),
        Column("cin_null", "the same along a random V of the same shape", top=S),
        Column("cout", "gradient along V, after the projection", top=S),
        Column("cout_update", "the optimizer's step along V", top=S),
        Column("fired", "modules whose gradient points hack-ward at all", top=S),
        Column("basis_overlap", "overlap of a refreshed V with the one before", top=S),
        Column("basis_overlap_first", "overlap of a refreshed V with the first one", top=S),
        Column("ratio_mean", "mean ratio student / teacher on the teacher's tokens", "ratio", FREE),
        Column("ratio_clip_low", "teacher's tokens below the lower clip bound", top=S),
        Column("ratio_clip_high", "teacher's tokens above the upper clip bound", top=S),
        Column("ratio_zeroed", "teacher's tokens that the clip leaves no gradient (off_policy)", top=S),
        Column("ratio_hist", "histogram of log(student / teacher)", "tokens by bin"),
        Column("groups_used", "groups whose rewards differ", "groups"),
        Column("tokens_mean", "mean length of a student rollout", "tokens"),
        Column("tokens_generated", "tokens sampled", "tokens"),
        Column("tokens_trained", "tokens in the gradient", "tokens"),
        *(
            Column(f"seconds_{phase}", f"time: {phase}", "seconds", FREE)
            for phase in ("generate", "grade", "backward", "project", "rest")
        ),
        Column("cpu_seconds", "CPU time of the step in the run's own process", "seconds", FREE),
    )
}
CHECKED = {name: column.top for name, column in COLUMNS.items() if column.top is not None}
MODES = [f"hack_{mode}" for mode in LOOPHOLES]  # a run has those of its problems
# A run that was made before a phase was timed has no such column.
OPTIONAL = {*MODES, *(name for name, column in COLUMNS.items() if column.unit == "seconds")}
RATIOS = ["ratio_mean", "ratio_clip_low", "ratio_clip_high", "ratio_zeroed"]


class Incomplete(Exception):
    """A run that does not count: it is absent or has not logged all its steps."""


def read_steps(path: Path, cell: Cell) -> Steps:
    """Read and check a run's `steps.parquet`; return `step` and the `CHECKED` columns.

    `[steps]` floats each, NaN where a step has nothing to measure. The histograms of `ratio_hist` are checked alone.

    Raises UserError with the path on a damaged file and on rows that no run writes, Incomplete where the last ones
    are missing.
    """
    # Arrow's columns, not a data frame: the histograms alone take pandas longer than all the rest.
    table = read_arrow(path)
    for column in ("step", *CHECKED, "ratio_hist"):
        needed = column not in OPTIONAL or column == f"hack_{cell.setting.held_out_mode}"
        if needed and column not in table.column_names:
            raise UserError(f"{path}: no column {column!r}; delete the run's folder to remake it")
    if not len(table):
        raise Incomplete(f"0 of {cell.steps} steps")
    found = [name for name in ("step", *CHECKED) if name in table.column_names]
    values = {name: numbers(table[name], name, path) for name in found}
    steps = values["step"]
    if steps[0] not in (0, 1) or not (np.diff(steps) == 1).all():
        raise UserError(f"{path}: column 'step' does not count up by one from 0 or 1")
    allowed = _nulls(values, cell.setting.knob("refresh") or 0)
    for name in found[1:]:
        own, top = values[name], CHECKED[name]
        missing = np.isnan(own) & ~allowed.get(name, np.False_)
        if missing.any():
            raise UserError(f"{path}: column {name!r} is empty at step {int(steps[missing][0])}")
        if ((own < 0) | (own > top) | np.isinf(own)).any():
            raise UserError(f"{path}: column {name!r} has a value outside 0 ... {top:.0f}")
    _check_histograms(table["ratio_hist"], values["ratio_mean"], path)
    if len(steps) > cell.steps:
        raise UserError(f"{path}: {len(steps)} rows, but the cell has {cell.steps} steps")
    if len(steps) < cell.steps:
        raise Incomplete(f"{len(steps)} of {cell.steps} steps")
    return values


def numbers(column: pa.ChunkedArray, name: str, path: Path) -> np.ndarray:
    """Return a column of numbers or flags as floats, null as NaN. Raises UserError on any other kind."""
    kind = column.type
    if column.null_count == len(column):
        return np.full(len(column), np.nan)
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise UserError(f"{path}: column {name!r} is {kind}, not numbers")
    return column.to_numpy().astype(float)


def _check_histograms(column: pa.ChunkedArray, ratio: np.ndarray, path: Path) -> None:
    """Raise UserError where a step that has a mean ratio has no histogram, or one has other bins than training's."""
    bins = len(RATIO_EDGES) + 1
    for counts, mean in zip(column.to_pylist(), ratio, strict=True):
        if counts is None and not np.isnan(mean):
            raise UserError(f"{path}: column 'ratio_hist' is empty at a step that has a mean ratio")
        found = np.zeros(bins) if counts is None else np.asarray(counts)
        if found.shape != (bins,) or found.dtype.kind not in "iuf":
            raise UserError(f"{path}: column 'ratio_hist' has a step of other than {bins} counts")


def _nulls(values: Steps, refresh: int) -> Steps:
    """Return column -> at which steps a null is one that a run writes, of columns that may have any.

    A null says that a step has nothing to measure, so columns with one reason are null together.
    """
    null = {name: np.isnan(own) for name, own in values.items()}

    def together(*names: str) -> np.ndarray:
        return np.logical_and.reduce([null[name] for name in names])

    modes = [name for name in MODES if name in values]
    # Without any advantage no gradient points anywhere; the optimizer's momentum may still move.
    idle = together("cin", "cin_s", "cin_t", "cout")
    # A run without a basis measures nothing along one, from its first step to its last.
    aligned = ("cin", "cin_s", "cin_t", "cout", "cout_update")
    unmeasured = np.full_like(idle, together(*aligned, "cin_null", "fired").all())
    unchanged = values["step"] % refresh != 0 if refresh else np.ones_like(idle)
    return {
        # A step whose problems all lack hidden tests has neither a solve nor an exploit rate.
        **dict.fromkeys(("solve_s", "exploit_s"), together("solve_s", "exploit_s")),
        # A loophole may have no prompt in a step, but not all of them.
        **(dict.fromkeys(modes, ~together(*modes)) if modes else {}),
        **dict.fromkeys(("cin", "cout", "cout_update"), idle),
        "cin_s": idle | ~null["cin_t"],
        "cin_t": idle | ~null["cin_s"],
        **dict.fromkeys(("cin_null", "fired"), unmeasured),
        # Teacher tokens with stored log-probs: some or none.
        **dict.fromkeys(RATIOS, together(*RATIOS)),
        **dict.fromkeys(("basis_overlap", "basis_overlap_first"), unchanged),
    }
