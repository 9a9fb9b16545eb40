"""The curves of all runs as data for the report's chart, where a reader lays rows over one another."""

import json
from collections.abc import Iterable, Mapping

import numpy as np

from projected_grpo.cells.cell import Question
from projected_grpo.measures.measure import MEASURES
from projected_grpo.measures.runs import Run

DRAWN = ("hack", "solve", "honest")


def _percent(values: np.ndarray | None) -> list[int | None]:
    """Return rates in whole percent, null where a step has none; nothing where a run has no such rate."""
    if values is None:
        return []
    return [None if np.isnan(value) else round(100 * float(value)) for value in values]


def curves(questions: Iterable[Question], runs: Mapping[str, Run]) -> str:
    """Return the curves as JSON that may stand inside a script element.

    `measures`: their names; `runs`: per run a list per measure of its percent by step, from step 1 on;
    `questions`: name, title, then its rows as [name, places in `runs`].
    """
    places: dict[str, int] = {}
    tables = []
    for question in questions:
        rows = []
        for row in question.rows:
            found = [cell.id for cell in row.cells if cell.id in runs]
            if found:
                rows.append([row.name, [places.setdefault(cell, len(places)) for cell in found]])
        if rows:
            tables.append([question.name, question.title, rows])
    data = {
        "measures": [MEASURES[name].axis for name in DRAWN],
        "runs": [
            [_percent(of(runs[cell])) for name in DRAWN if (of := MEASURES[name].by_step)] for cell in places
        ],
        "questions": tables,
    }
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
