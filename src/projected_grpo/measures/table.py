"""One question's table: run folders -> a row per arm with seeds, paired differences and the published figures."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd

from projected_grpo.cells.cell import Question, Row
from projected_grpo.measures import stats
from projected_grpo.measures.measure import MEASURES, Measure
from projected_grpo.measures.runs import FINAL, Run, base_rates, load_runs

Values = dict[str, dict[int, float]]  # measure -> seed -> the run's number
Pairs = dict[str, stats.Paired]  # by measure
Places = dict[str, stats.Place]  # by measure
PAPERS_SETTING = ", run_tests"  # the loophole that the paper trains on, as the names of such rows end


def compared() -> list[str]:
    """Return the measures on which rows are compared."""
    return [name for name, measure in MEASURES.items() if measure.compared]


@dataclass(frozen=True)
class Line:
    """One row of a table with all that was computed for it; dictionaries are keyed by measure."""

    row: Row
    values: Values
    summary: dict[str, stats.Summary]
    to_baseline: Pairs
    to_against: Pairs  # paired with the row that it names in `against`
    to_random: Pairs  # paired with the random-V row of the same baseline, k, gate, refresh and other settings
    random: str | None  # that row's name
    place: Places  # in the population of placebos that it names in `place_in`
    published: dict
    runs: tuple[Run, ...]

    @property
    def name(self) -> str:
        return self.row.name

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(run.cell.seed for run in self.runs))

    @property
    def cells(self) -> tuple[str, ...]:
        return tuple(run.cell.id for run in self.runs)

    def over(self, measure: str, first: int, last: int) -> dict[int, float]:
        """Return seed -> the mean of a measure by step over the steps `first` to `last`."""
        found = {}
        for run in self.runs:
            steps, values = run.steps["step"], MEASURES[measure].by_step(run)
            found[run.cell.seed] = float(np.nanmean(values[(steps >= first) & (steps <= last)]))
        return found

    @property
    def is_as_piloted(self) -> bool:
        """Whether the row is of the kind that a pilot's spread is of: each setting but arm and mix at its default.

        Longer runs, other loopholes, adapters, corpora and sizes spread otherwise, so that nothing is said of what they
        could find.
        """
        usual = {"arm", "knobs", "mix", "final_eval"}
        return not self.row.setting.model_dump(exclude_defaults=True, exclude=usual)


@dataclass(frozen=True)
class Table:
    """A question's lines, the measure that its answer is about, and the cells that do not count.

    `pooled`: lines of rows that share a `pooled` name; `placebos`: lines of populations, of which nothing is claimed;
    `pilot`: mix -> measure -> std over seeds of a paired difference, as the config has it from a pilot; `base`: the
    untrained model's rates by measure.
    """

    question: Question
    lines: tuple[Line, ...]
    pooled: tuple[Line, ...]
    placebos: tuple[Line, ...]
    about: Measure
    left_out: dict[str, str] = field(repr=False)  # cell id -> why
    pilot: Mapping[float, Mapping[str, float]] = field(default_factory=dict)
    base: dict[str, stats.Summary] = field(default_factory=dict, repr=False)

    @property
    def primary(self) -> str:
        return self.about.name

    @property
    def every(self) -> tuple[Line, ...]:
        return (*self.lines, *self.pooled, *self.placebos)

    @property
    def seeds(self) -> tuple[int, ...]:
        """Return the seeds of all runs, sorted."""
        return tuple(sorted({seed for line in self.every for seed in line.seeds}))

    def line(self, name: str) -> Line:
        return next(line for line in self.every if line.name == name)

    def has(self, measure: str) -> bool:
        return any(measure in line.summary for line in self.lines)

    def combined(self, weights: Mapping[str, float], measure: str) -> dict[int, float]:
        """Return the weighted sum of rows by seed, where all of them have the measure."""
        found = [self.line(name).values.get(measure, {}) for name in weights]
        seeds = sorted(set.intersection(*map(set, found)))
        return {
            seed: sum(w * own[seed] for w, own in zip(weights.values(), found, strict=True)) for seed in seeds
        }


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


def _random(rows: Iterable[Row], row: Row) -> str | None:
    """Return the name of the random-V row that differs from this row in its axes alone; None where there is none."""
    if row.baseline is None or row.is_control or row.population:
        return None
    same = (r.name for r in rows if r.is_control and r.baseline == row.baseline)
    of = {r.name: r for r in rows}
    return next((name for name in same if not row.cells[0].unlike(of[name].cells[0])), None)


def _paired(values: dict[str, Values], others: dict[str, str | None], short: set[str]) -> dict[str, Pairs]:
    """Pair rows by seed with the row that `others` names, with Holm's p over the rows of each measure.

    short: rows that lack runs.
    """
    others = {name: other for name, other in others.items() if other}
    pairs: dict[str, Pairs] = {name: {} for name in others}
    for measure in compared():
        for name, other in others.items():
            pair = stats.paired(values[name].get(measure, {}), values[other].get(measure, {}))
            if pair is not None:
                pairs[name][measure] = pair
        own = {name: pairs[name][measure] for name in others if measure in pairs[name]}
        waiting = sum(
            (name not in own or own[name].p is None) and not short.isdisjoint((name, other))
            for name, other in others.items()
        )
        tests = zip(own, stats.adjust(list(own.values()), waiting), strict=True)
        for name, pair in tests:
            pairs[name][measure] = pair
    return pairs


def _placed(rows: Iterable[Row], values: dict[str, Values], short: set[str]) -> dict[str, Places]:
    """Place rows in their populations by their difference to the baseline, over the seeds that all have.

    Holm's p is over the rows of each measure. Placebos without any run are left out.
    """
    claims = {row.name: row for row in rows if row.place_in and row.baseline}
    found: dict[str, Places] = {name: {} for name in claims}
    for measure in compared():
        for name, row in claims.items():
            others = [values[r.name].get(measure, {}) for r in rows if r.population == row.place_in]
            own, base = (values[each].get(measure, {}) for each in (name, row.baseline))
            every = [own, base, *filter(None, others)]
            seeds = set.intersection(*map(set, every))
            if seeds:
                mean, _, *population = (sum(v[s] - base[s] for s in seeds) / len(seeds) for v in every)
                if (placed := stats.place(mean, population)) is not None:
                    found[name][measure] = replace(placed, n=len(seeds))
        own = {name: found[name][measure] for name in claims if measure in found[name]}
        waiting = sum(
            (name not in own or own[name].p is None)
            and any(r.name in short for r in rows if r.name == name or r.population == row.place_in)
            for name, row in claims.items()
        )
        for (name, placed), p in zip(
            own.items(), stats.holm([o.p for o in own.values()], waiting), strict=True
        ):
            found[name][measure] = replace(placed, holm=p)
    return found


def _paper_name(row: Row) -> str:
    """Return the name of the paper's row, which a row of four loopholes and one of the paper's alone have in common."""
    alone = ", " + "+".join(row.setting.modes or ())
    return row.name.removesuffix(alone) if alone == PAPERS_SETTING else row.name


def _primary(question: Question) -> str:
    """Return the measure that a question's answer is about."""
    if question.primary:
        return question.primary
    if any(row.setting.held_out_mode for row in question.rows):
        return "hack_heldout"
    return "hack_ablated" if any(row.setting.final_eval for row in question.rows) else "hack"


def _pooled(question: Question, values: dict[str, Values]) -> tuple[tuple[Row, ...], dict[str, Values]]:
    """Return one row for the rows of each `pooled` name, and its values: their mean by seed, where all have one."""
    of = {row.name: row.pooled for row in question.rows}
    rows, found = [], {}
    for name in dict.fromkeys(filter(None, of.values())):
        parts = [row for row in question.rows if row.pooled == name]
        if len(parts) < 2:
            continue
        baseline = of.get(parts[0].baseline) if parts[0].baseline else None
        cells = tuple(cell for row in parts for cell in row.cells)
        setting = parts[0].setting.model_copy(update={"held_out_mode": None})
        one = replace(parts[0], name=name, setting=setting, baseline=baseline, cells=cells)
        rows.append(replace(one, against=None, place_in=None, pooled=None))
        found[name] = {}
        for measure in set.intersection(*(set(values[row.name]) for row in parts)):
            every = [values[row.name][measure] for row in parts]
            seeds = sorted(set.intersection(*map(set, every)))
            if seeds:
                found[name][measure] = {seed: sum(v[seed] for v in every) / len(every) for seed in seeds}
    return tuple(rows), found


def _lines(
    rows: tuple[Row, ...], values: dict[str, Values], runs: dict[str, Run], short: set[str], paper: dict
) -> tuple[Line, ...]:
    """Compute the lines of rows that are one family: each comparison adjusts its p over them."""
    random = {row.name: _random(rows, row) for row in rows}
    to_baseline = _paired(values, {row.name: row.baseline for row in rows if not row.population}, short)
    to_baseline |= _paired(values, {row.name: row.baseline for row in rows if row.population}, short)
    to_against = _paired(values, {row.name: row.against for row in rows}, short)
    to_random = _paired(values, random, short)
    placed = _placed(rows, values, short)
    return tuple(
        Line(
            row=row,
            values=values[row.name],
            summary={name: stats.summarise(list(own.values())) for name, own in values[row.name].items()},
            to_baseline=to_baseline.get(row.name, {}),
            to_against=to_against.get(row.name, {}),
            to_random=to_random.get(row.name, {}),
            random=random[row.name],
            place=placed.get(row.name, {}),
            published=paper.get(_paper_name(row), {}),
            runs=tuple(runs[cell.id] for cell in row.cells if cell.id in runs),
        )
        for row in rows
    )


def make_table(
    question: Question, results: Path, pilot: Mapping[float, Mapping[str, float]] = MappingProxyType({})
) -> Table:
    """Compute a question's table from its run folders; missing and incomplete runs are left out and named.

    pilot: mix -> measure -> std over seeds of a paired difference.
    """
    runs, left_out = load_runs(results, question.cells)
    values: dict[str, Values] = {}
    for row in question.rows:
        values[row.name] = {}
        for cell in row.cells:
            for measure, value in runs[cell.id].measures.items() if cell.id in runs else ():
                # A shared run may have more than this question asks for.
                if row.setting.final_eval or measure not in FINAL:
                    values[row.name].setdefault(measure, {})[cell.seed] = value
    pooled, means = _pooled(question, values)
    rows = (*question.rows, *pooled)
    short = {row.name for row in rows if any(cell.id in left_out for cell in row.cells)}
    paper = published_rows().query("question == @question.name").set_index("row").to_dict("index")
    lines = _lines(question.rows, values, runs, short, paper)
    return Table(
        question=question,
        lines=tuple(line for line in lines if not line.row.population),
        pooled=_lines(pooled, means, runs, short, {}),
        placebos=tuple(line for line in lines if line.row.population),
        about=MEASURES[_primary(question)],
        left_out=left_out,
        pilot=pilot,
        base=_base(question, results),
    )


def _base(question: Question, results: Path) -> dict[str, stats.Summary]:
    """Return the rates of the rows' base before training, over replications; none where rows differ in their base."""
    models = {tuple(sorted({cell.model for cell in row.cells})) for row in question.rows}
    found = [base_rates(results, model) for model in models.pop()] if len(models) == 1 else []
    names = [name for name in MEASURES if any(name in rates for rates in found)]
    return {name: stats.summarise([rates[name] for rates in found if name in rates]) for name in names}
