"""One question's table: run folders -> a row per arm with seeds, paired deltas and the published figures."""

import math
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

import pandas as pd

from projected_grpo.cells.cell import Question, Row
from projected_grpo.measures import stats
from projected_grpo.measures.runs import FINAL, Loaded, Run, load_runs, of_cells

# Column order that scripts rely on; the groups in between stand only where they apply.
PUBLISHED = [
    "question",
    "row",
    "arm",
    "basis",
    "gate",
    "refresh",
    "mix",
    "steps",
    "hack",
    "hack_std",
    "solve",
    "solve_std",
    "delta_hack",
    "delta_hack_std",
    "delta_solve",
    "n",
    "seeds",
]
TESTS = [
    "baseline",
    "exploit",
    "delta_hack_lo",
    "delta_hack_hi",
    "p_hack",
    "p_hack_holm",
    "delta_solve_lo",
    "delta_solve_hi",
    "p_solve",
]
ABLATED = ["hack_ablated", "solve_ablated"]
HELD_OUT = ["hack_heldout", "delta_hack_heldout"]
BESIDE = ["hack_published", "solve_published", "delta_hack_published", "cells"]
# Compared with the baseline, the row named in `against` and a random V: a Holm family each within the question.
COMPARED = ("hack", "solve", "exploit", "compile", *FINAL, "hack_heldout", "cout_update")
TEXT = ("question", "row", "arm", "basis", "gate", "seeds", "baseline", "against", "control", "cells")


@dataclass(frozen=True)
class Line:
    """One row of a table with all that was computed for it; dictionaries are keyed by measure name."""

    row: Row
    values: dict[str, dict[int, float]]  # measure -> seed -> the run's number
    summary: dict[str, stats.Summary]
    against: dict[str, stats.Paired]  # paired with the baseline
    holm: dict[str, float | None]
    versus: dict[str, stats.Paired]  # paired with the row named in `against`
    versus_holm: dict[str, float | None]
    control: str | None  # the random-V row of the same baseline
    beyond: stats.Paired | None  # primary measure, paired with that row
    beyond_holm: float | None
    published: dict
    seeds: tuple[int, ...]
    cells: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.row.name

    @property
    def steps(self) -> int:
        return self.row.cells[0].steps


@dataclass(frozen=True)
class Table:
    """A question's lines, the measure that its answer is about, and the cells that do not count."""

    question: Question
    lines: tuple[Line, ...]
    primary: str
    left_out: dict[str, str]  # cell id -> why
    runs: dict[str, Run] = field(repr=False)

    def line(self, name: str) -> Line:
        return next(line for line in self.lines if line.name == name)

    def has(self, measure: str) -> bool:
        return any(measure in line.summary for line in self.lines)


def published_rows() -> pd.DataFrame:
    """Return the paper's figures (Qwen3-4B), one row per question and arm."""
    path = files("projected_grpo.pages") / "published.csv"
    with path.open(encoding="utf-8") as file:
        return pd.read_csv(file, dtype={"seeds": str})


def _control(question: Question, row: Row) -> str | None:
    """Return the name of the random-V row that shares this row's baseline and arm."""
    if row.baseline is None or row.is_control:
        return None
    same = [r for r in question.rows if r.is_control and r.baseline == row.baseline]
    return next((r.name for r in same if r.setting.arm == row.setting.arm), None)


Values = dict[str, dict[str, dict[int, float]]]  # row -> measure -> seed -> the run's number


def _paired(
    values: Values, others: dict[str, str], short: set[str]
) -> tuple[dict[str, dict], dict[str, dict]]:
    """Pair rows by seed with the row that `others` names: (differences, Holm's p) by row and measure.

    short: rows that lack runs.
    """
    pairs: dict[str, dict[str, stats.Paired]] = {name: {} for name in values}
    holm: dict[str, dict[str, float | None]] = {name: {} for name in values}
    for measure in COMPARED:
        for name, other in others.items():
            pair = stats.paired(values[name].get(measure, {}), values[other].get(measure, {}))
            if pair is not None:
                pairs[name][measure] = pair
        ps = {name: pairs[name][measure].p for name in others if measure in pairs[name]}
        waiting = sum(ps.get(name) is None and not short.isdisjoint((name, others[name])) for name in others)
        adjusted = stats.holm(list(ps.values()), waiting)
        for name, p in zip(ps, adjusted, strict=True):
            holm[name][measure] = p
    return pairs, holm


def _primary(question: Question) -> str:
    """Return the measure that a question's answer is about."""
    if question.primary:
        return question.primary
    if any(row.setting.held_out_mode for row in question.rows):
        return "hack_heldout"
    return "hack_ablated" if any(row.setting.arm == "route" for row in question.rows) else "hack"


def make_table(question: Question, results: Path, loaded: Loaded | None = None) -> Table:
    """Compute a question's table from its run folders; missing and incomplete runs are left out and named.

    loaded: what `load_runs` returned for a superset of the question's cells, to read no run twice.
    """
    runs, left_out = of_cells(loaded or load_runs(results, question.cells), question.cells)
    values: Values = {}
    for row in question.rows:
        values[row.name] = {}
        for cell in row.cells:
            if cell.id in runs:
                for measure, value in runs[cell.id].measures.items():
                    # A shared run may have more than this question asks for.
                    if row.setting.final_eval or measure not in FINAL:
                        values[row.name].setdefault(measure, {})[cell.seed] = value
    primary = _primary(question)
    short = {row.name for row in question.rows if any(cell.id in left_out for cell in row.cells)}
    against, holm = _paired(values, {row.name: row.baseline for row in question.rows if row.baseline}, short)
    versus, versus_holm = _paired(
        values, {row.name: row.against for row in question.rows if row.against}, short
    )
    controls = {row.name: _control(question, row) for row in question.rows}
    beyond, beyond_holm = _paired(values, {name: other for name, other in controls.items() if other}, short)

    paper = published_rows().query("question == @question.name").set_index("row").to_dict("index")
    lines = []
    for row in question.rows:
        done = [cell for cell in row.cells if cell.id in runs]
        lines.append(
            Line(
                row=row,
                values=values[row.name],
                summary={
                    m: stats.summarise(list(by_seed.values())) for m, by_seed in values[row.name].items()
                },
                against=against[row.name],
                holm=holm[row.name],
                versus=versus[row.name],
                versus_holm=versus_holm[row.name],
                control=controls[row.name],
                beyond=beyond[row.name].get(primary),
                beyond_holm=beyond_holm[row.name].get(primary),
                published=paper.get(row.name, {}),
                seeds=tuple(cell.seed for cell in done),
                cells=tuple(cell.id for cell in done),
            )
        )
    return Table(question, tuple(lines), primary, left_out, runs)


def _difference(name: str, pair: stats.Paired, holm: float | None) -> dict[str, float | None]:
    """Return the columns of one paired difference."""
    deltas = {"": pair.delta, "_std": pair.std, "_lo": pair.lo, "_hi": pair.hi}
    return {f"delta_{name}{end}": value for end, value in deltas.items()} | {
        f"p_{name}": pair.p,
        f"p_{name}_holm": holm,
        f"detectable_{name}": pair.detectable,
    }


def _record(table: Table, line: Line) -> dict:
    setting, vanilla = line.row.setting, line.row.setting.arm == "vanilla"
    record = {
        "question": table.question.name,
        "row": line.name,
        "arm": setting.arm,
        "basis": setting.basis,
        "gate": None if vanilla else setting.knob("gate"),
        "refresh": None if vanilla else setting.knob("refresh"),
        "mix": setting.mix,
        "steps": line.steps,
        "n": len(line.seeds),
        "seeds": ";".join(str(seed) for seed in line.seeds),
        "baseline": line.row.baseline,
        "cells": list(line.cells),
        "n_delta": line.against["hack"].n if "hack" in line.against else None,
    }
    for measure, summary in line.summary.items():
        record[measure] = summary.mean
        record[f"{measure}_std"] = summary.std
    for measure, pair in line.against.items():
        record |= _difference(measure, pair, line.holm[measure])
    if line.row.against:
        record["against"] = line.row.against
    for measure, pair in line.versus.items():
        record |= _difference(f"against_{measure}", pair, line.versus_holm[measure])
    if line.beyond is not None:
        record |= {"control": line.control, **_difference("control", line.beyond, line.beyond_holm)}
    for measure in ("hack", "solve", "delta_hack"):
        record[f"{measure}_published"] = line.published.get(measure)
    return record


def to_frame(table: Table) -> pd.DataFrame:
    """Return the table as rows for `QN.parquet`: the columns people script against, then everything else."""
    records = [_record(table, line) for line in table.lines]
    ablated = ABLATED if table.has("hack_ablated") else []
    held_out = HELD_OUT if table.has("hack_heldout") else []
    first = [*PUBLISHED, *TESTS, *ablated, *held_out, *BESIDE]
    extra = sorted({key for record in records for key in record} - set(first))
    frame = pd.DataFrame(records).reindex(columns=[*first, *extra])
    for column in frame:
        if column not in TEXT:
            frame[column] = pd.to_numeric(frame[column]).astype("float64")
    frame["refresh"] = frame["refresh"].astype("Int64")
    return frame.astype({"n": "int64", "steps": "int64"})


def published_delta(table: Table, line: Line, measure: str = "hack") -> float | None:
    """Return the paper's delta of `hack` or `solve`: as printed there, else of its means over the same seeds."""
    own = line.published
    if not own:
        return None
    if not math.isnan(own[f"delta_{measure}"]):
        return own[f"delta_{measure}"]
    base = table.line(line.row.baseline).published if line.row.baseline else {}
    found = own[measure] - base[measure] if base and base["seeds"] == own["seeds"] else math.nan
    return None if math.isnan(found) else found
