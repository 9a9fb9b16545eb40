"""Hacking without a teacher, and after it left (Q21)."""

import numpy as np

from projected_grpo.measures import stats
from projected_grpo.measures.measure import LAST
from projected_grpo.measures.table import Line, Table
from projected_grpo.pages.blocks import Listing, Paragraph
from projected_grpo.pages.contrasts import is_shown, with_n, with_p
from projected_grpo.pages.text import rate


def _hack_at(line: Line, until: int) -> dict[int, float]:
    """Return seed -> hack rate in training, mean of the last steps up to `until`."""
    return line.over("hack", until - LAST + 1, until)


def _rows(
    table: Table,
) -> list[tuple[Line, int, dict[int, float], dict[int, float], stats.Paired | None]]:
    """Return (row, its last step with teacher rows or its first, hack rate up to there, at its end, the change)."""
    found = []
    for line in table.lines:
        training, taught = line.row.cells[0].training, line.row.setting.mix > 0
        if line.runs and (since := training.teacher_steps if taught else 1):
            found.append((line, since, _hack_at(line, since), _hack_at(line, training.steps)))
    if not any(line.row.setting.mix for line, *_ in found):
        return []
    pairs = stats.adjust([stats.paired(end, start) for _, _, start, end in found])
    return [(*row, pair) for row, pair in zip(found, pairs, strict=True)]


def _mean_of(values: dict[int, float]) -> str:
    return rate(float(np.mean(list(values.values()))))


def without_teacher(table: Table) -> list:
    """Say how hacking in training goes on where the teacher's rows end: from its last steps to those of the run.

    Beside it rows without any teacher, from their first step on.
    """
    items = []
    for line, since, start, end, pair in _rows(table):
        when = f"up to step {since}" if line.row.setting.mix else "at step 1"
        items.append(f"`{line.name}` from {_mean_of(start)} {when} to {_mean_of(end)}: {with_p(pair)}")
    if not items:
        return []
    text = (
        f"Hack rate in training: the last {LAST} steps against the last {LAST} with the teacher's rows, or against the "
        "first step where there never were any; paired by seed."
    )
    return [Paragraph(text, "Does hacking go on without a teacher?"), Listing(tuple(items))]


def said(table: Table) -> str:
    """Say what plain training does without a teacher, and after it left; empty where it always is there."""
    parts = []
    for line, since, start, end, pair in _rows(table):
        if line.row.setting.defence.family == "none":
            lead = f"after the teacher's last step, {since}," if line.row.setting.mix else "without a teacher"
            shown = "" if is_shown(pair) else ", no change being shown"
            parts.append(f"{lead} from {_mean_of(start)} to {_mean_of(end)}{shown} ({with_n([pair])})")
    return f"Plain training's hack rate goes {' and '.join(parts)}." if parts else ""
