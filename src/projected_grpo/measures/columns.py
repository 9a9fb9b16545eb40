"""The columns of `QN.parquet` and `QN.estimates.parquet`, with description and unit in the files themselves.

`python -m projected_grpo.measures.columns` writes the same reference to `docs/columns.md`.
"""

import math
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from projected_grpo.files import atomic, write_text
from projected_grpo.measures import estimates, numbers
from projected_grpo.measures.measure import FILES, MEASURES
from projected_grpo.measures.measured import Measured
from projected_grpo.measures.published import published
from projected_grpo.measures.steps import COLUMNS

ROWS = {  # name -> (unit, description)
    "row": ("", "name of the row"),
    "arm": ("", "what is done against hacking"),
    "n": ("seeds", "runs that count"),
    "seeds": ("", "their seeds, `41;42`"),
    "steps": ("steps", "steps of a run"),
    "baseline": ("", "row that differences are taken to"),
    "cells": ("", "ids of the runs, in the order of the seeds"),
    "hack_published": ("share", "the paper's hack rate (Qwen3-4B), null where it has none"),
    "solve_published": ("share", "the paper's solve rate"),
    "delta_hack_published": ("share", "the paper's difference in the hack rate"),
}
MEANS = ("hack", "exploit", "solve", "honest", "known_hack", "known_honest", "novel_hack", "plain_solve")
STDS, DELTAS = ("hack", "solve"), ("hack", "solve", "honest")
WHERE_THERE = ("hack_ablated", "solve_ablated", "hack_heldout")  # columns of questions that have them
DIFFERENCE = {  # of a measure `{}`: its column -> the column of the estimates, what it says
    "delta_{}": ("delta", "mean over seeds of row - baseline"),
    "delta_{}_lo": ("lo", "lower end of its 95% t-interval"),
    "delta_{}_hi": ("hi", "upper end"),
    "p_{}": ("p", "p of the paired t-test"),
    "p_{}_holm": ("p_holm", "Holm's p over the claims of the question; null for what is no claim"),
}


def wide(own: Measured, frame: pd.DataFrame) -> pd.DataFrame:
    """Return `QN.parquet`, a line a row: the means and differences that people script against."""
    rows, theirs = own.rows.values(), published(own)
    seeds = [numbers.seeds_of(own.values[name]) for name in own.rows]
    some = [name for name in WHERE_THERE if frame["measure"].eq(name).any()]
    # Column -> where it stands in the estimates.
    taken = {name: ("mean", estimates.RATE, name) for name in (*MEANS, *some)}
    taken |= {f"{name}_std": ("std", estimates.RATE, name) for name in STDS}
    for name in DELTAS:
        taken |= {form.format(name): (key, estimates.BASELINE, name) for form, (key, _) in DIFFERENCE.items()}
    if "hack_heldout" in some:
        taken["delta_hack_heldout"] = ("delta", estimates.BASELINE, "hack_heldout")
    known = frame[frame["contrast"].isin((estimates.RATE, estimates.BASELINE))]
    lines = known.pivot(index="row", columns=["contrast", "measure"]).reindex(list(own.rows))
    made = {
        "row": list(own.rows),
        "arm": [row.setting.arm for row in rows],
        "n": list(map(len, seeds)),
        "seeds": [";".join(map(str, each)) for each in seeds],
        "steps": [row.cells[0].steps for row in rows],
        "baseline": [row.baseline for row in rows],
        **{name: lines[place].to_numpy() if place in lines else math.nan for name, place in taken.items()},
    }
    for key in ("hack", "solve", "delta_hack"):
        made[f"{key}_published"] = [theirs.get(name, {}).get(key, math.nan) for name in own.rows]
    made["cells"] = [[cell.id for cell in row.cells if cell.id not in own.left_out] for row in rows]
    return pd.DataFrame(made)


def reference() -> dict[str, tuple[str, str]]:
    """Return column -> (unit, description) of every column that the files of a question can have."""
    found = ROWS | estimates.COLUMNS
    for name, measure in MEASURES.items():
        found[name] = measure.unit, f"{measure.about}: mean over seeds"
        found[f"{name}_std"] = measure.unit, f"{measure.about}: std over seeds (ddof 1)"
        for form, (_, about) in DIFFERENCE.items():
            unit = "p" if form.startswith("p_") else measure.unit
            found[form.format(name)] = unit, f"{measure.about}: {about}"
    return found


def write_frame(frame: pd.DataFrame, path: Path) -> None:
    """Write a frame as Parquet, atomically; its columns that are in the reference carry `description` and `unit`."""
    table, known = pa.Table.from_pandas(frame, preserve_index=False), reference()
    fields = [
        field.with_metadata(dict(zip(("unit", "description"), known[field.name], strict=True)))
        if field.name in known
        else field
        for field in table.schema
    ]
    with atomic(path) as temporary:
        pq.write_table(table.cast(pa.schema(fields, table.schema.metadata)), temporary)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


HEAD = ("column", "unit", "what it says")


def to_markdown() -> str:
    """Return `docs/columns.md`."""
    parts = [
        "# Columns",
        "Written by `python -m projected_grpo.measures.columns` from the lists that the pipeline itself reads; a test "
        "holds the two equal. The Parquet tables carry the same words as `description` and `unit` of each field.",
        "## `results/QN.estimates.parquet`",
        "A line a row, contrast and measure. Pages draw and say nothing that does not stand here.",
        _table(HEAD, ((f"`{n}`", u or "text", a) for n, (u, a) in estimates.COLUMNS.items())),
        "## `results/QN.parquet`",
        "A line a row. A measure `X` has its mean over seeds under its own name.",
        _table(HEAD, ((f"`{n}`", u or "text", a) for n, (u, a) in ROWS.items())),
        f"`hack` and `solve` have `X_std` (ddof 1), too; `{'`, `'.join(DELTAS)}` these, against the row in `baseline`:",
        _table(("column", "what it says"), ((f"`{f.format('X')}`", a) for f, (_, a) in DIFFERENCE.items())),
        "## Measures",
        f"What is measured, from `{'`, `'.join(FILES)}` of each run. By step: last-five-step mean of a run. `runs.csv` "
        "has them by run.",
        _table(
            ("measure", "unit", "from", "compared", "what it says"),
            ((f"`{n}`", m.unit, m.file, "yes" if m.compared else "", m.about) for n, m in MEASURES.items()),
        ),
        "## `results/grpo/{cell}/steps.parquet`",
        _table(HEAD, ((f"`{n}`", c.unit, c.about) for n, c in COLUMNS.items())),
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    write_text("docs/columns.md", to_markdown())
