"""The exploit x mode matrix, as the grader's own check measured it."""

import pandas as pd

from projected_grpo.files import read_json
from projected_grpo.pages.context import Context, banner
from projected_grpo.pages.figures.shares import matrix
from projected_grpo.pages.needs import MATRIX
from projected_grpo.pages.page import Page, address, render


def make(context: Context) -> Page:
    """Return the page of the matrix."""
    found = read_json(context.results / MATRIX)
    counts = found["counts"]  # submission -> mode -> effective, right, n
    modes = list(next(iter(counts.values())))
    cells = [(row, mode, *counted) for row, by_mode in counts.items() for mode, counted in by_mode.items()]
    frame = pd.DataFrame(cells, columns=["submission", "mode", "effective", "right", "n"])
    text = render(
        "grader.md.j2",
        banner=banner(context.config),
        address=f"{address(context.name)}matrix.svg",
        counts=counts,
        modes=modes,
        elsewhere=int((frame["effective"].gt(0) & frame["submission"].ne(frame["mode"])).sum()),
        sandbox=found["sandbox"],
        source=MATRIX,
    )
    shares = (frame["effective"] / frame["n"]).to_numpy().reshape(len(counts), len(modes))
    drawn = {"matrix": matrix(shares, list(counts), modes, "graded under")}
    return Page(context.name, text, drawn, {".parquet": frame})
