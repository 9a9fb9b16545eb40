"""The primary outcomes of all questions, corrected together, as a table of Markdown."""

from collections.abc import Mapping

import pandas as pd

from projected_grpo.cells.cell import TEACHERS
from projected_grpo.cells.config import Config
from projected_grpo.measures import estimates
from projected_grpo.measures.measure import MEASURES
from projected_grpo.measures.plane import FRONTIER
from projected_grpo.pages import words
from projected_grpo.pages.answer import Estimated

HELD = {estimates.AGAINST: "against the runner-up", FRONTIER: "above training less"}
HELD_OUT = "hack_heldout"  # of a loophole whose exploits the pairs do not show
KEYS = ["question", "row", "measure", "contrast"]


def outcomes_table(config: Config, found: pd.DataFrame, made: Mapping[str, Estimated]) -> str:
    """Return a line an outcome that the config names.

    found: `estimates.primary_outcomes` of all questions; made: the questions, whose rows say whose exploits they need.
    """
    asked = config.primary.outcomes
    lines = {tuple(line[key] for key in KEYS): line for line in found.to_dict("records")}
    rows = []
    for one in asked:
        line = lines.get((one.question, one.row or "", one.measure, one.contrast)) or lines.get(
            (one.question, one.row or "", one.measure, estimates.POOLED)
        )
        own = made[one.question].own.rows.get(one.row or "") if one.question in made else None
        named = one.row or one.choice
        if own and own.exploits == TEACHERS and one.measure != HELD_OUT:
            named = f"{named} (an upper bound, no defence)"
        measured = MEASURES[one.measure].head
        if one.contrast != estimates.BASELINE:
            measured += f", {HELD.get(one.contrast, one.contrast)}"
        if line is None or line["n"] == 0:
            rows.append([one.question, named, measured, *[words.NONE] * 5])
            continue
        change = f"{words.points(line['delta'])} ({words.span(line['lo'], line['hi'])})"
        ps = [words.p_value(line[key]) for key in ("p", "p_holm")]
        rows.append([one.question, named, measured, change, *ps, line["verdict"], line["named"]])
    head = [
        "question",
        "outcome",
        "of",
        "change, points (95%)",
        "p, alone",
        f"Holm p over {len(asked)}",
        "verdict",
        "named",
    ]
    return words.table(head, rows, 3)
