"""The exploit x mode matrix, as the grader's own check measured it."""

import pandas as pd
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure as Drawing

from projected_grpo.files import read_json
from projected_grpo.pages import style
from projected_grpo.pages.blocks import Figure, Page, Paragraph, Source, grid
from projected_grpo.pages.context import Context
from projected_grpo.verdicts.verdict import Verdict

MATRIX = "grader/matrix.json"
CAPTION = (
    "Share of submissions whose exploit is effective (rows) by the mode they are graded under (columns)."
)
ASKS = (
    "Is every exploit effective in its own mode only? Rows are submissions, columns the mode they are graded under: "
    "how often the mode's channel found the exploit effective, of how many."
)
ORACLE = (
    "Exploits come with wrong answers, so the strict oracle (last column, over all modes) must reject them. Honest "
    "right answers must pass it and earn no channel."
)


def needs(context: Context) -> list[str]:
    """What the check measured."""
    return context.below(MATRIX)


def make(context: Context) -> Verdict:
    """Return the page of the matrix."""
    found = read_json(context.results / MATRIX)
    counts, level = found["counts"], found["sandbox"]  # submission -> mode -> channel, gt_pass, n
    modes = list(next(iter(counts.values())))
    cells = [(row, mode, *counted) for row, by_mode in counts.items() for mode, counted in by_mode.items()]
    frame = pd.DataFrame(cells, columns=["submission", "mode", "effective", "right", "n"])
    share = frame.assign(share=frame["effective"] / frame["n"])
    shares = share.pivot(index="submission", columns="mode", values="share")
    total = frame.groupby("submission")[["right", "n"]].sum()
    columns = {"submission": lambda row: row}
    columns |= {mode: lambda row, m=mode: "{0}/{2}".format(*counts[row][m]) for mode in modes}
    columns["strict oracle"] = lambda row: "{}/{}".format(*total.loc[row])
    page = Page(
        name=context.name,
        title="Loopholes and the grader",
        menu="Grader",
        asks=ASKS,
        blocks=(Figure("matrix", CAPTION), Paragraph(ORACLE), grid(counts, columns)),
        answer=(Paragraph(f"The matrix is diagonal. Sandbox layer: {level}."),),
        sources=(Source("Files behind this page", files=(MATRIX, "logs/grader")),),
        default=True,
    )
    return Verdict(page, frame, {"matrix": (draw(shares.loc[list(counts), modes]), CAPTION)})


def draw(shares: pd.DataFrame) -> Drawing:
    """Draw the shares as squares, each with its number."""
    with style.styled():
        drawing = style.figure(1.3 + 0.36 * len(shares))
        axes = drawing.subplots()
        shades = LinearSegmentedColormap.from_list("shares", [style.PAPER, style.BLUE])
        for y, row in enumerate(shares.to_numpy()):
            for x, share in enumerate(row):
                # The ends by name, so that they follow the page's theme.
                colour = shades(share) if 0 < share < 1 else (style.PAPER, style.BLUE)[int(share)]
                axes.add_patch(style.square(x, y, colour))
                shown = f"{share:g}" if share in (0, 1) else f"{share:.2f}"
                ink = style.PAPER if share > 0.5 else style.SOFT
                axes.text(x, y, shown, ha="center", va="center", color=ink)
        axes.set(
            xlim=(-0.5, len(shares.columns) - 0.5), ylim=(len(shares) - 0.5, -0.5), xlabel="graded under"
        )
        axes.set_xticks(range(len(shares.columns)), shares.columns, rotation=25, ha="right")
        axes.set_yticks(range(len(shares)), shares.index)
        axes.tick_params(length=0)
        axes.grid(False)
        axes.spines[:].set_visible(False)
        return drawing
