"""What a row stands for in its table: a claim, its control, one of a population of placebos, a part of a pooled row."""

from collections.abc import Mapping

from projected_grpo.cells.cell import Cell, control_of
from projected_grpo.cells.config import Config
from projected_grpo.cells.questions import Question, Row
from projected_grpo.errors import nearest
from projected_grpo.schema_errors import Fail, below

LEAST = 3  # placebos of a population: with fewer there is no spread to speak of


def check_roles(name: str, question: Question, cells: Mapping[str, Cell], config: Config, fail: Fail) -> None:
    """Check that rows are only held against what differs from them in content alone; cells: a run of each row."""
    for number, row in enumerate(question.rows):
        wrong = below(fail, name, "rows", number)
        _check_against(row, cells, config, below(wrong, "against"))
        for key in ("against", "place_in") if row.population is not None else ():
            if (value := getattr(row, key)) is not None:
                wrong([key], f"{value!r}, allowed for a placebo of a population: null")
        if row.place_in is not None:
            _check_place(name, question, row, cells, below(wrong, "place_in"))
        if row.pooled is not None:
            _check_pooled(question, row, below(wrong, "pooled"))


def _check_against(row: Row, cells: Mapping[str, Cell], config: Config, wrong: Fail) -> None:
    """Beyond random is told against random axes of the same k, gate, refresh and all else."""
    if row.against is not None:
        pair = [cells[row.name], cells[row.against]]
        is_random = [control_of(cell.setting, config) == "random" for cell in pair]
        if sum(is_random) == 1 and (differ := pair[0].unlike(pair[1])):
            allowed = "a row of random axes and one of the same k, gate, refresh and other settings"
            both = f"{row.against!r} and this row differ in {', '.join(differ)}"
            wrong([], f"{both}, allowed: {allowed}")


def _check_place(name: str, question: Question, row: Row, cells: Mapping[str, Cell], wrong: Fail) -> None:
    if question.baseline_of(row) is None:
        wrong([], f"{row.place_in!r}, allowed for a row without baseline: null")
    populations = sorted({other.population for other in question.rows if other.population is not None})
    members = [other for other in question.rows if other.population == row.place_in]
    if not members:
        allowed = (
            nearest(str(row.place_in), populations)
            if populations
            else "allowed: rows with `population` first"
        )
        wrong([], f"no population {row.place_in!r} in {name}; {allowed}")
    if len(members) < LEAST:
        has = f"{row.place_in!r} has {len(members)} rows"
        wrong([], f"{has}, allowed: a population of {LEAST} or more")
    for other in members:
        differ = cells[row.name].unlike(cells[other.name])
        differ += ["baseline"] if question.baseline_of(row) != question.baseline_of(other) else []
        if differ:
            both = f"{other.name!r} and this row differ in {', '.join(differ)}"
            wrong([], f"{both}, allowed: in the basis alone")


def _check_pooled(question: Question, row: Row, wrong: Fail) -> None:
    """Rows of one pooled name have one baseline, baselines of one pooled name, or none."""
    rows = {other.name: other for other in question.rows}
    if row.pooled in rows:
        wrong([], f"{row.pooled!r} is a row's name, allowed: another one")
    parts = {part.name: question.baseline_of(part) for part in rows.values() if part.pooled == row.pooled}
    names = {part: rows[base].pooled if base else None for part, base in parts.items()}
    if len(set(parts.values())) > 1 and (len(set(names.values())) > 1 or None in names.values()):
        said = ", ".join(f"{name!r}: {pooled or 'none'}" for name, pooled in names.items())
        wrong([], f"{row.pooled!r}, allowed: one baseline, or one `pooled` of the rows' baselines ({said})")
