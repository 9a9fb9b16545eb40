"""The primary outcomes of all questions, corrected together, as a table of Markdown."""

import pandas as pd

from projected_grpo.cells.config import Config
from projected_grpo.measures import estimates
from projected_grpo.pages import words

KEYS = ["question", "row", "measure", "contrast"]


def outcomes_table(config: Config, found: pd.DataFrame) -> str:
    """Return a line an outcome that the config names; found: `estimates.primary_outcomes` of all questions."""
    asked = config.primary.outcomes
    lines = {tuple(line[key] for key in KEYS): line for line in found.to_dict("records")}
    rows = []
    for one in asked:
        line = lines.get((one.question, one.row or "", one.measure, one.contrast)) or lines.get(
            (one.question, one.row or "", one.measure, estimates.POOLED)
        )
        named = one.row or f"not chosen yet: {one.choice}"
        if line is None or line["n"] == 0:
            rows.append([one.question, named, *[words.NONE] * 5])
            continue
        change = f"{words.points(line['delta'])} ({words.span(line['lo'], line['hi'])})"
        ps = [words.p_value(line[key]) for key in ("p", "p_holm")]
        rows.append([one.question, named, change, *ps, line["verdict"], line["named"]])
    head = [
        "question",
        "outcome",
        "change, points (95%)",
        "p",
        f"Holm p over {len(asked)}",
        "verdict",
        "named",
    ]
    return words.table(head, rows, 2)
