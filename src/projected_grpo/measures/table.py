"""One question's table: run folders -> a row per arm with seeds, paired differences and the published figures."""

import math
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path

import pandas as pd

from projected_grpo.cells.cell import Question, Row
from projected_grpo.measures import stats
from projected_grpo.measures.measure import MEASURES, Measure
from projected_grpo.measures.runs import FINAL, Run, base_rates, load_runs

Values = dict[str, dict[int, float]]  # measure -> seed -> the run's number
Pairs = dict[str, stats.Paired]  # by measure


@dataclass(frozen=True)
class Line:
    """One row of a table with all that was computed for it; dictionaries are keyed by measure."""

    row: Row
    values: Values
    summary: dict[str, stats.Summary]
    to_baseline: Pairs
    to_against: Pairs  # paired with the row that it names in `against`
    to_random: Pairs  # paired with the random-V row of the same baseline
    random: str | None  # that row's name
    published: dict
    runs: tuple[Run, ...]

    @property
    def name(self) -> str:
        return self.row.name

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(run.cell.seed for run in self.runs)

    @property
    def cells(self) -> tuple[str, ...]:
        return tuple(run.cell.id for run in self.runs)


@dataclass(frozen=True)
class Table:
    """A question's lines, the measure that its answer is about, and the cells that do not count."""

    question: Question
    lines: tuple[Line, ...]
    about: Measure
    left_out: dict[str, str] = field(repr=False)  # cell id -> why
    base: dict[str, stats.Summary] = field(
        default_factory=dict, repr=False
    )  # the untrained model's, by measure

    @property
    def primary(self) -> str:
        return self.about.name

    def line(self, name: str) -> Line:
        return next(line for line in self.lines if line.name == name)

    def has(self, measure: str) -> bool:
        return any(measure in line.summary for line in self.lines)


def published_rows() -> pd.DataFrame:
    """Return the paper's figures (Qwen3-4B), one row per question and arm."""
    with (files("projected_grpo.measures") / "published.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, dtype={"seeds": str})


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


def _random(question: Question, row: Row) -> str | None:
    """Return the name of the random-V row that shares this row's baseline and arm."""
    if row.baseline is None or row.is_control:
        return None
    same = [r for r in question.rows if r.is_control and r.baseline == row.baseline]
    return next((r.name for r in same if r.setting.arm == row.setting.arm), None)


def _paired(values: dict[str, Values], others: dict[str, str | None], short: set[str]) -> dict[str, Pairs]:
    """Pair rows by seed with the row that `others` names, with Holm's p over the rows of each measure.

    short: rows that lack runs.
    """
    others = {name: other for name, other in others.items() if other}
    pairs: dict[str, Pairs] = {name: {} for name in values}
    for measure in (name for name, measure in MEASURES.items() if measure.compared):
        for name, other in others.items():
            pair = stats.paired(values[name].get(measure, {}), values[other].get(measure, {}))
            if pair is not None:
                pairs[name][measure] = pair
        own = {name: pairs[name][measure] for name in others if measure in pairs[name]}
        waiting = sum(
            (name not in own or own[name].p is None) and not short.isdisjoint((name, other))
            for name, other in others.items()
        )
        for (name, pair), p in zip(
            own.items(), stats.holm([pair.p for pair in own.values()], waiting), strict=True
        ):
            pairs[name][measure] = replace(pair, holm=p)
    return pairs


def _primary(question: Question) -> str:
    """Return the measure that a question's answer is about."""
    if question.primary:
        return question.primary
    if any(row.setting.held_out_mode for row in question.rows):
        return "hack_heldout"
    return "hack_ablated" if any(row.setting.final_eval for row in question.rows) else "hack"


def make_table(question: Question, results: Path) -> Table:
    """Compute a question's table from its run folders; missing and incomplete runs are left out and named."""
    runs, left_out = load_runs(results, question.cells)
    values: dict[str, Values] = {}
    for row in question.rows:
        values[row.name] = {}
        for cell in row.cells:
            for measure, value in runs[cell.id].measures.items() if cell.id in runs else ():
                # A shared run may have more than this question asks for.
                if row.setting.final_eval or measure not in FINAL:
                    values[row.name].setdefault(measure, {})[cell.seed] = value
    short = {row.name for row in question.rows if any(cell.id in left_out for cell in row.cells)}
    random = {row.name: _random(question, row) for row in question.rows}
    to_baseline = _paired(values, {row.name: row.baseline for row in question.rows}, short)
    to_against = _paired(values, {row.name: row.against for row in question.rows}, short)
    to_random = _paired(values, random, short)
    paper = published_rows().query("question == @question.name").set_index("row").to_dict("index")
    lines = tuple(
        Line(
            row=row,
            values=values[row.name],
            summary={name: stats.summarise(list(own.values())) for name, own in values[row.name].items()},
            to_baseline=to_baseline[row.name],
            to_against=to_against[row.name],
            to_random=to_random[row.name],
            random=random[row.name],
            published=paper.get(row.name, {}),
            runs=tuple(runs[cell.id] for cell in row.cells if cell.id in runs),
        )
        for row in question.rows
    )
    return Table(question, lines, MEASURES[_primary(question)], left_out, _base(question, results))


def _base(question: Question, results: Path) -> dict[str, stats.Summary]:
    """Return the rates of the rows' base before training, over replications; none where rows differ in their base."""
    models = {tuple(sorted({cell.model for cell in row.cells})) for row in question.rows}
    found = [base_rates(results, model) for model in models.pop()] if len(models) == 1 else []
    names = [name for name in MEASURES if any(name in rates for rates in found)]
    return {name: stats.summarise([rates[name] for rates in found if name in rates]) for name in names}
