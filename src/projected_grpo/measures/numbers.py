"""Numbers by run as one tidy frame: which run, what made it, a measure and its value. Tables are functions of it.

A results tree has the frame from its runs; `docs/results/runs.csv` keeps it, a line a run and a column a measure, so
that runs of several machines add up and every page can be drawn without a tree.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from projected_grpo.cells.cell import Cell, Question
from projected_grpo.errors import UserError
from projected_grpo.files import write_text
from projected_grpo.measures import early_stopping
from projected_grpo.measures.measure import MEASURES
from projected_grpo.measures.panels import base_file
from projected_grpo.measures.runs import FINAL, Run, base_rates, stopped_rates

Values = dict[str, dict[int, float]]  # measure -> seed -> the run's number
# Of a run; all but the first two may be null. `made`: the commit at which it was made.
KEYS = ("cell", "seed", "model", "row", "settings", "code", "base", "teacher", "pool", "basis", "made")
COLUMNS = [*KEYS, "measure", "value"]
BASE = "base/{}"  # stands for the cell of a base before training
STOPPED = "stopped/{}/{}"  # for that of a run which ends after a step


def settings_digest(cell: Cell) -> str:
    """Return a hash of all that decides a run but its seed; a knob that is off counts for nothing."""

    def kept(value: object) -> object:
        if isinstance(value, Mapping):
            inner = {key: kept(own) for key, own in value.items() if key != "seed"}
            return {key: own for key, own in inner.items() if own not in (None, False, {}, [])}
        return value

    text = json.dumps(kept(json.loads(cell.params())), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def row_settings(cell: Cell) -> str:
    """Return what a row says of a run, as short JSON: the settings that are not the default."""
    setting = cell.setting.model_dump(mode="json", exclude_defaults=True, exclude={"knobs", "modes"})
    knobs = cell.setting.knobs.model_dump(mode="json", exclude_defaults=True)
    return json.dumps({"arm": cell.setting.arm, **setting, **knobs}, sort_keys=True)


def of_cell(cell: Cell) -> dict[str, object]:
    """Return what is known of a run before it is made, by the names of `KEYS`."""
    own = {"cell": cell.id, "seed": cell.seed, "model": cell.model, "row": row_settings(cell)}
    return own | {"settings": settings_digest(cell)}


def of_runs(runs: Iterable[Run]) -> pd.DataFrame:
    """Return the frame of finished runs."""
    records = []
    for run in runs:
        inputs = run.info.get("inputs") or {}
        own = of_cell(run.cell) | {"code": run.info.get("code"), "made": run.info.get("commit")}
        own |= {name: inputs.get(name) for name in ("base", "pool", "basis")}
        records += [own | {"measure": name, "value": value} for name, value in run.measures.items()]
    return pd.DataFrame(records, columns=COLUMNS)


def of_bases(results: Path, questions: Iterable[Question]) -> pd.DataFrame:
    """Return the frame of the bases before training that were judged on the panels."""
    models = {cell.model: cell.seed for question in questions for cell in question.cells}
    records = [
        {"cell": BASE.format(model), "seed": seed, "model": model, "measure": name, "value": value}
        for model, seed in models.items()
        if (Path(results) / base_file(model)).exists()
        for name, value in base_rates(results, model).items()
    ]
    return pd.DataFrame(records, columns=COLUMNS)


def of_stopped(results: Path, questions: Iterable[Question]) -> pd.DataFrame:
    """Return the frame of plain runs that end earlier, where they were judged so; `dose`: how much was trained."""
    cells = {cell.id: cell for question in questions for cell in early_stopping.cells(question)}
    records = []
    for cell in cells.values():
        path = Path(results) / early_stopping.file(cell.id)
        for step, own in stopped_rates(path).items() if path.exists() else ():
            run = {"cell": STOPPED.format(step, cell.id), "seed": cell.seed, "model": cell.model}
            records += [run | {"measure": name, "value": value} for name, value in own.items()]
    return pd.DataFrame(records, columns=COLUMNS)


def read(path: Path) -> pd.DataFrame:
    """Read a `runs.csv`; UserError on a missing key, a run that stands there twice, a value that is no number."""
    frame = pd.read_csv(path, dtype={name: str for name in KEYS if name != "seed"})
    if missing := [name for name in KEYS if name not in frame]:
        raise UserError(f"{path}: no column {missing[0]!r}")
    if (again := frame["cell"].duplicated()).any():
        raise UserError(f"{path}: {frame.loc[again, 'cell'].iloc[0]} stands there twice")
    for name in frame.columns.difference(KEYS):
        if frame[name].dtype.kind not in "if":
            raise UserError(f"{path}: column {name!r} has a value that is no number")
    frame = frame.astype({name: object for name in KEYS if name != "seed"})
    frame = frame.where(frame.notna(), None)
    return frame.melt(list(KEYS), var_name="measure").dropna(subset="value").astype({"value": float})[COLUMNS]


def write(frame: pd.DataFrame, path: Path) -> None:
    """Write the frame as `runs.csv`: full precision, the same bytes for the same numbers."""
    keys = frame.drop_duplicates("cell").set_index("cell")[list(KEYS[1:])]
    wide = frame.pivot(index="cell", columns="measure", values="value")
    order = [name for name in MEASURES if name in wide] + sorted(set(wide) - set(MEASURES))
    write_text(path, keys.join(wide[order]).sort_index().to_csv(lineterminator="\n"))


def merged(old: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Return both, with a run of `new` in place of that of `old`."""
    frames = [old[~old["cell"].isin(new["cell"])], new]
    return pd.concat([frame for frame in frames if len(frame)] or [old], ignore_index=True)


def check(question: Question, frame: pd.DataFrame) -> None:
    """Raise UserError where one table would mix what does not belong together.

    Runs of one arm have one code hash (those that a critic judges another, as it is loaded for them alone), runs of one
    model one base, and each run has the settings that its row asks for. What a line does not know is not compared.
    """
    cells = {cell.id: cell for cell in question.cells}
    own = frame[frame["cell"].isin(cells)].drop_duplicates("cell")
    for run in own.dropna(subset="settings").itertuples():
        if run.settings != settings_digest(cells[run.cell]):
            raise UserError(
                f"{question.name}: {run.cell} was made with other settings ({run.settings}, asked for: "
                f"{settings_digest(cells[run.cell])}); make it again"
            )
    settings = own["cell"].map({name: cell.setting for name, cell in cells.items()})
    arm = settings.map(lambda each: f"{each.arm}, judged by the critic" if each.needs.critic else each.arm)
    for key, by, what in (("code", arm, "arm"), ("base", own["model"], "model")):
        for name, part in own.dropna(subset=key).groupby(by):
            if part[key].nunique() > 1:
                one, other = part.drop_duplicates(key).head(2).itertuples()
                raise UserError(
                    f"{question.name}: {one.cell} and {other.cell} of {what} {name} have two hashes of {key}, "
                    f"{getattr(one, key)} and {getattr(other, key)}; one table needs one, so make the older again"
                )


def by_row(question: Question, frame: pd.DataFrame) -> dict[str, Values]:
    """Return row -> measure -> seed -> number. Raises UserError like `check`."""
    check(question, frame)
    kept = frame[frame["cell"].isin([cell.id for cell in question.cells])]
    by_cell: dict[str, dict[str, float]] = {}
    for cell, measure, value in zip(kept["cell"], kept["measure"], kept["value"], strict=True):
        by_cell.setdefault(cell, {})[measure] = value
    values: dict[str, Values] = {row.name: {} for row in question.rows}
    for row in question.rows:
        for cell in row.cells:
            for measure, value in by_cell.get(cell.id, {}).items():
                # A shared run may have more than this question asks for.
                if row.setting.final_eval or measure not in FINAL:
                    values[row.name].setdefault(measure, {})[cell.seed] = value
    return values


def combined(values: Mapping[str, Values], weights: Mapping[str, float], measure: str) -> dict[int, float]:
    """Return seed -> the weighted sum of rows, where all of them have the measure; values: by row."""
    found = [values.get(row, {}).get(measure, {}) for row in weights]
    seeds = sorted(set.intersection(*map(set, found)))
    return {
        seed: sum(w * own[seed] for w, own in zip(weights.values(), found, strict=True)) for seed in seeds
    }


def seeds_of(*rows: Values) -> list[int]:
    """Return the seeds of all numbers of rows, sorted."""
    return sorted({seed for values in rows for by_seed in values.values() for seed in by_seed})


def of_base(question: Question, frame: pd.DataFrame) -> Values:
    """Return measure -> seed -> rate of the rows' base before training; nothing where rows differ in their base."""
    models = {tuple(sorted({cell.model for cell in row.cells})) for row in question.rows}
    if len(models) != 1:
        return {}
    return _by_measure(frame, {BASE.format(cell.model): cell.seed for cell in question.rows[0].cells})


def of_early_ends(question: Question, frame: pd.DataFrame) -> dict[int, Values]:
    """Return step -> measure -> seed -> rate of a plane's plain training that ends there."""
    runs = early_stopping.cells(question)
    names = frame.loc[frame["cell"].str.startswith(STOPPED.split("/")[0] + "/"), "cell"]
    steps = sorted({int(name.split("/")[1]) for name in names})
    found = {
        step: _by_measure(frame, {STOPPED.format(step, run.id): run.seed for run in runs}) for step in steps
    }
    return {step: values for step, values in found.items() if values}


def _by_measure(frame: pd.DataFrame, seeds: Mapping[str, int]) -> Values:
    """Return measure -> seed -> value of the lines of some cells; seeds: by cell."""
    found: Values = {}
    for one in frame[frame["cell"].isin(seeds)].itertuples():
        found.setdefault(one.measure, {})[seeds[one.cell]] = one.value
    return found
