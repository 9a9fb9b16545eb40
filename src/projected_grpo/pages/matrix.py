"""The exploit x mode matrix as a figure, read from the page that the grader's own check writes."""

import re
from pathlib import Path

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from projected_grpo.errors import UserError
from projected_grpo.pages import style
from projected_grpo.pages.prose import split_row

CAPTION = (
    "Share of submissions whose exploit is effective (rows) by the mode they are graded under (columns)."
)


def read_shares(page: Path) -> tuple[list[str], list[str], np.ndarray]:
    """Return row names, column names and shares [rows, columns] of a page's table of `found/total` cells.

    Raises UserError with the path where the page has no such table.
    """
    text = page.read_text(encoding="utf-8")
    lines = [split_row(line) for line in text.splitlines() if line.startswith("|")]
    rows = [line for line in lines[2:] if all(re.fullmatch(r"\d+/[1-9]\d*", cell) for cell in line[1:])]
    if not rows:
        raise UserError(f"{page}: no table with cells like 3/6; delete it to remake it")
    shares = [[int(found) / int(total) for found, total in (c.split("/") for c in row[1:])] for row in rows]
    return [row[0] for row in rows], lines[0][1:], np.array(shares)


def matrix(page: Path) -> Figure:
    """Draw the shares as a grid, each cell with its number; see `read_shares` for the page and its errors."""
    rows, columns, shares = read_shares(page)
    with style.styled():
        drawing = style.figure(1.3 + 0.36 * len(rows))
        axes = drawing.subplots()
        shades = LinearSegmentedColormap.from_list("shares", [style.PAPER, style.BLUE])
        for (y, x), share in np.ndenumerate(shares):
            axes.add_patch(
                style.square(x, y, shades(share) if 0 < share < 1 else (style.PAPER, style.BLUE)[int(share)])
            )
            shown = "0" if share == 0 else "1" if share == 1 else f"{share:.2f}"
            axes.text(x, y, shown, ha="center", va="center", color=style.PAPER if share > 0.5 else style.SOFT)
        axes.set_xlim(-0.5, len(columns) - 0.5)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xticks(range(len(columns)), columns, rotation=25, ha="right")
        axes.set_yticks(range(len(rows)), rows)
        axes.tick_params(length=0)
        axes.grid(False)
        axes.spines[:].set_visible(False)
        axes.set_xlabel("graded under")
        return drawing
