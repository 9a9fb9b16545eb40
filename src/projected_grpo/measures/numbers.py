"""Numbers by run as one tidy frame: which run, what made it, a measure and its value. Tables are functions of it.

A results tree has the frame from its runs; `docs/results/runs.csv` keeps it, a line a run and a column a measure, so
that runs of several machines add up and every page can be drawn without a tree.
"""

import hashlib
import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TypeVar

import pandas as pd

from projected_grpo.cells.cell import Cell, Question
from projected_grpo.cells.config import Config
from projected_grpo.errors import UserError
from projected_grpo.files import write_text
from projected_grpo.measures import beside
from projected_grpo.measures.measure import MEASURES
from projected_grpo.measures.panels import base_file, panel_rates
from projected_grpo.measures.runs import FINAL, Loaded, Run, load_runs, read_panels
from projected_grpo.records import read_sealed, record_path

Of = TypeVar("Of", str, int)
Values = dict[str, dict[int, float]]  # measure -> seed -> the run's number
# Of a run; all but the first two may be null. `made`: the commit at which it was made.
KEYS = ("cell", "seed", "model", "row", "settings", "code", "base", "teacher", "pool", "basis", "made")
COLUMNS = [*KEYS, "measure", "value"]
# Of other stages' files: no run's own file has them.
BESIDE = [name for name, measure in MEASURES.items() if measure.of is None and measure.by_step is None]
BASE = "base/{}"  # stands for the cell of a base before training
STOPPED = "stopped/{}/{}"  # for that of a run which ends after a step
Known = tuple[dict[str, object], Mapping[str, float]]  # a run by the names of `KEYS`, and its numbers


def settings_digest(cell: Cell) -> str:
    """Return a hash of all that decides a run but its seed; a knob that is off counts for nothing."""

    def kept(value: object) -> object:
        if isinstance(value, Mapping):
            inner = {key: kept(own) for key, own in value.items() if key != "seed"}
            return {key: own for key, own in inner.items() if own not in (None, False, {}, [])}
        return value

    text = json.dumps(kept(json.loads(cell.params())), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def of_cell(cell: Cell) -> dict[str, object]:
    """Return what is known of a run before it is made, by the names of `KEYS`; row: its settings but the defaults."""
    setting = cell.setting.model_dump(mode="json", exclude_defaults=True, exclude={"knobs", "modes"})
    knobs = cell.setting.knobs.model_dump(mode="json", exclude_defaults=True)
    row = json.dumps({"arm": cell.setting.arm, **setting, **knobs}, sort_keys=True)
    own = {"cell": cell.id, "seed": cell.seed, "model": cell.model, "row": row}
    return own | {"settings": settings_digest(cell)}


def of_runs(runs: Iterable[Run], results: Path) -> Iterator[Known]:
    """Yield finished runs with their measures."""
    teachers = cache(lambda pool: _teacher(results, pool))
    for run in runs:
        inputs = run.info.get("inputs") or {}
        own = of_cell(run.cell) | {"code": run.info.get("code"), "made": run.info.get("commit")}
        own |= {name: inputs.get(name) for name in ("base", "pool", "basis")}
        yield own | {"teacher": teachers(run.cell.pool)}, run.measures


def _teacher(results: Path, pool: str) -> str | None:
    """Return the digest of the teacher that wrote a pool, as the pool's record has it; None without one."""
    record = record_path(results / "teacher_pool" / pool / "pool.json", results)
    said = read_sealed(record) if record.exists() else {"settings": {}, "inputs": []}
    folder = said["settings"].get("teacher")
    return next((digest for file, digest in said["inputs"] if str(Path(file).parent) == folder), None)


def of_bases(results: Path, questions: Iterable[Question]) -> Iterator[Known]:
    """Yield the bases before training with their rates on the panels, of those that were judged.

    One that all seeds share has the first of them.
    """
    models = {cell.model: cell.seed for question in questions for cell in reversed(question.cells)}
    for model, seed in models.items():
        if (path := Path(results) / base_file(model)).exists():
            own = {"cell": BASE.format(model), "seed": seed, "model": model}
            yield own, panel_rates(read_panels(path))


def of_stopped(results: Path, questions: Iterable[Question]) -> Iterator[Known]:
    """Yield plain runs that end earlier, where they were judged so; `dose`: how much was trained."""
    for file, cell in chain.from_iterable(beside.early_ends(question).items() for question in questions):
        if not (path := Path(results) / file).exists():
            continue
        for (step, dose), facts in read_panels(path, ("after", "dose")).groupby(["after", "dose"]):
            own = {"cell": STOPPED.format(int(step), cell.id), "seed": cell.seed, "model": cell.model}
            yield own, panel_rates(facts) | {"dose": dose}


def tidy(*known: Iterable[Known]) -> pd.DataFrame:
    """Return the frame of runs and their numbers; the first number of a run's measure counts."""
    records = [
        own | {"measure": name, "value": value}
        for own, values in chain(*known)
        for name, value in values.items()
    ]
    return pd.DataFrame(records, columns=COLUMNS).drop_duplicates(["cell", "measure"], ignore_index=True)


def of_tree(config: Config, questions: Collection[Question]) -> tuple[pd.DataFrame, Loaded]:
    """Return the numbers of questions in a results tree, and its runs with why others are left out."""
    results = Path(config.results)
    cells = {cell.id: cell for question in questions for cell in question.cells}
    loaded = load_runs(results, cells.values())
    more = chain.from_iterable(beside.numbers(question, config) for question in questions)
    stopped = of_stopped(results, questions)
    # What was measured of a model alone is no run.
    others = ((of_cell(cell), values) for cell, values in more if cell.id in loaded[0])
    return tidy(of_runs(loaded[0].values(), results), of_bases(results, questions), others, stopped), loaded


def read(path: Path) -> pd.DataFrame:
    """Read a `runs.csv`.

    Raises UserError on a missing key, a run without name or that stands there twice, a value that is no finite number,
    and a file that ends within a line: of its last number digits may be missing.
    """
    try:
        if not path.read_bytes().endswith(b"\n"):
            raise ValueError("it ends within a line")
        frame = pd.read_csv(path, dtype={name: str for name in KEYS if name != "seed"})
    except ValueError as error:  # pandas' own are
        raise UserError(f"{path}: not readable as CSV ({str(error).strip()})") from error
    if missing := [name for name in KEYS if name not in frame]:
        raise UserError(f"{path}: no column {missing[0]!r}")
    if (unnamed := frame["cell"].isna()).any():
        raise UserError(f"{path}:{unnamed.idxmax() + 2}: a run without a name in column 'cell'")
    if (again := frame["cell"].duplicated()).any():
        raise UserError(f"{path}: {frame.loc[again, 'cell'].iloc[0]} stands there twice")
    for name in ("seed", *frame.columns.difference(KEYS)):
        if frame[name].dtype.kind not in ("i" if name == "seed" else "if"):
            raise UserError(f"{path}: column {name!r} has a value that is no number")
        if (infinite := frame[name].abs() == math.inf).any():
            raise UserError(f"{path}: {frame.loc[infinite, 'cell'].iloc[0]} has an infinite {name!r}")
    frame = frame.astype({name: object for name in KEYS if name != "seed"})
    frame = frame.where(frame.notna(), None)
    return frame.melt(list(KEYS), var_name="measure").dropna(subset="value").astype({"value": float})[COLUMNS]


def in_order(measures: Iterable[str]) -> list[str]:
    """Return measures in the order of their list, others behind them by name."""
    there = set(measures)
    return [name for name in MEASURES if name in there] + sorted(there - set(MEASURES))


def write(frame: pd.DataFrame, path: Path) -> None:
    """Write the frame as `runs.csv`: full precision, the same bytes for the same numbers."""
    keys = frame.drop_duplicates("cell").set_index("cell")[list(KEYS[1:])]
    wide = frame.pivot(index="cell", columns="measure", values="value")
    write_text(path, keys.join(wide[in_order(wide)]).sort_index().to_csv(lineterminator="\n"))


def merged(old: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Return both, with a run of `new` in place of that of `old`.

    What other stages measured of the very same run stays where `new` has it not. A pool has one teacher, so what one
    row says of it holds for all.
    """
    keys = [key for key in KEYS if key != "teacher"]
    runs = new[list(KEYS)].drop_duplicates().astype(old.dtypes[list(KEYS)])
    same = old[old["measure"].isin(BESIDE)].drop(columns="teacher").merge(runs, on=keys)
    frames = [old[~old["cell"].isin(new["cell"])], new, same]
    every = pd.concat([frame for frame in frames if len(frame)] or [old], ignore_index=True)
    teachers = every.dropna(subset=["pool", "teacher"]).drop_duplicates("pool").set_index("pool")["teacher"]
    every["teacher"] = every["teacher"].fillna(every["pool"].map(teachers))
    return every.drop_duplicates(["cell", "measure"], ignore_index=True)


def check(question: Question, frame: pd.DataFrame) -> None:
    """Raise UserError where one table would mix what does not belong together.

    Runs of one arm have one code hash (those that a critic judges another, as it is loaded for them alone), runs of one
    model one base and one teacher, and each run has the settings that its row asks for. What a line does not know is
    not compared.
    """
    cells = {cell.id: cell for cell in question.cells}
    own = frame[frame["cell"].isin(cells)].drop_duplicates("cell")
    for run in own.dropna(subset="settings").itertuples():
        if run.settings != settings_digest(cells[run.cell]):
            raise UserError(
                f"{question.name}: {run.cell} was made with other settings ({run.settings}, asked for: "
                f"{settings_digest(cells[run.cell])}); make it again"
            )
    arms = dict[str, str]()
    for row in question.rows:
        judged = ", judged by the critic" if row.setting.needs.critic else ""
        arms |= {cell.id: row.setting.arm + judged for cell in row.cells}
    arm = own["cell"].map(arms)
    model = own["model"]
    for key, by, what in (("code", arm, "arm"), ("base", model, "model"), ("teacher", model, "model")):
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
    asked = [(row.name, cell.id, cell.seed) for row in question.rows for cell in row.cells]
    found: dict[str, Values] = {row.name: {} for row in question.rows} | values_of(frame, asked)
    # A shared run may have more than this question asks for.
    for name in (row.name for row in question.rows if not row.setting.final_eval):
        found[name] = {measure: own for measure, own in found[name].items() if measure not in FINAL}
    return found


def values_of(frame: pd.DataFrame, cells: Iterable[tuple[Of, str, int]]) -> dict[Of, Values]:
    """Return name -> measure -> seed -> value; cells: which name one is of, its id, the seed that it counts for."""
    known = pd.DataFrame(list(cells), columns=["of", "cell", "seed"])
    own = frame[frame["cell"].isin(known["cell"])].drop(columns="seed").merge(known, on="cell")
    own = own.sort_values("seed", kind="stable")[["of", "measure", "seed", "value"]]
    found: dict[Of, Values] = {}
    for of, measure, seed, value in own.itertuples(index=False, name=None):
        found.setdefault(of, {}).setdefault(measure, {})[seed] = value
    return found


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
    models = sorted({(cell.seed, cell.model) for cell in question.cells})
    if len(dict(models)) < len(models):
        return {}
    return values_of(frame, [("", BASE.format(model), seed) for seed, model in models]).get("", {})


def of_early_ends(question: Question, frame: pd.DataFrame) -> dict[int, Values]:
    """Return step -> measure -> seed -> rate of a plane's plain training that ends there."""
    seeds = {cell.id: cell.seed for cell in beside.early_ends(question).values()}
    there = pd.Series(frame["cell"].unique(), dtype=str)
    ends = there.str.extract(f"^{STOPPED.format('([0-9]+)', '(.+)')}$").assign(cell=there)
    ends = ends[ends[1].isin(seeds)].astype({0: int})
    own = zip(ends[0], ends["cell"], ends[1].map(seeds), strict=True)
    return dict(sorted(values_of(frame, own).items()))
