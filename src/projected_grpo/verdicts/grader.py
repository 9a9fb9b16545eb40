"""The exploit x mode matrix, as the grader's own check measured it."""

import pandas as pd

from projected_grpo.files import read_json
from projected_grpo.pages import figures, words
from projected_grpo.pages.context import Context
from projected_grpo.pages.page import Page, address, render

MATRIX = "grader/matrix.json"


def needs(context: Context) -> list[str]:
    """What the check measured."""
    return context.below(MATRIX)


def make(context: Context) -> Page:
    """Return the page of the matrix."""
    found = read_json(context.results / MATRIX)
    counts = found["counts"]  # submission -> mode -> effective, right, n
    modes = list(next(iter(counts.values())))
    cells = [(row, mode, *counted) for row, by_mode in counts.items() for mode, counted in by_mode.items()]
    frame = pd.DataFrame(cells, columns=["submission", "mode", "effective", "right", "n"])
    shares = frame.assign(share=frame["effective"] / frame["n"]).pivot(
        index="submission", columns="mode", values="share"
    )
    total = frame.groupby("submission")[["right", "n"]].sum()
    rows = [
        [name, *("{0}/{2}".format(*by_mode[mode]) for mode in modes), "{}/{}".format(*total.loc[name])]
        for name, by_mode in counts.items()
    ]
    text = render(
        "grader.md.j2",
        banner=context.config.banner,
        figure=f"{address(context.name)}matrix.svg",
        table=words.table(["submission", *modes, "strict oracle"], rows),
        elsewhere=int((frame["effective"].gt(0) & frame["submission"].ne(frame["mode"])).sum()),
        sandbox=found["sandbox"],
        source=MATRIX,
    )
    ordered = shares.loc[list(counts), modes]
    drawn = {"matrix": figures.matrix(ordered.to_numpy(), list(counts), modes, "graded under")}
    return Page(context.name, text, drawn, {".parquet": frame})
