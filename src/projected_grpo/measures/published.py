"""The paper's figures (Qwen3-4B), as `published.csv` has them, by the rows of a question."""

import math
from pathlib import Path

import pandas as pd

from projected_grpo.cells.cell import Row
from projected_grpo.measures.measured import Measured

PAPERS_SETTING = ", run_tests"  # the loophole that the paper trains on, as the names of such rows end


def _paper_name(row: Row) -> str:
    """Return the name of the paper's row, which a row of four loopholes and one of the paper's alone have in common."""
    alone = ", " + "+".join(row.setting.modes or ())
    return row.name.removesuffix(alone) if alone == PAPERS_SETTING else row.name


def published(own: Measured) -> dict[str, dict]:
    """Return row -> the paper's hack, solve, n, seeds and `delta_` of both, NaN where it has none.

    A delta is the one printed there, else the difference of its means over the same seeds.
    """
    every = pd.read_csv(Path(__file__).with_name("published.csv"), dtype={"seeds": str})
    theirs = every[every["question"].eq(own.question.name)].set_index("row").to_dict("index")
    found = {}
    for name, row in own.rows.items():
        line = theirs.get(_paper_name(row))
        if line is None:
            continue
        base = own.rows.get(row.baseline or "")
        other = theirs.get(_paper_name(base)) if base else None
        for measure in ("hack", "solve"):
            if math.isnan(line[f"delta_{measure}"]) and other and other["seeds"] == line["seeds"]:
                line = line | {f"delta_{measure}": line[measure] - other[measure]}
        found[name] = line
    return found
