"""Figures of shares: as squares with their numbers, and as dots."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from projected_grpo.pages import style


def matrix(shares: np.ndarray, rows: Sequence[str], columns: Sequence[str], x: str) -> Figure:
    """Return shares `[rows, columns]` as squares, each with its number."""
    with style.drawn(1.3 + 0.36 * len(shares)) as (drawing, axes):
        shades = LinearSegmentedColormap.from_list("shares", [style.PAPER, style.BLUE])
        for (y, column), share in np.ndenumerate(shares):
            look: dict = {"facecolor": shades(share), "edgecolor": style.GRID, "linewidth": 0.8}
            axes.add_patch(Rectangle((column - 0.48, y - 0.48), 0.96, 0.96, **look))
            ink = style.PAPER if share > 0.5 else style.SOFT
            axes.text(column, y, f"{100 * share:.0f}", ha="center", va="center", color=ink)
        axes.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(rows) - 0.5, -0.5), xlabel=x)
        axes.set_xticks(range(len(columns)), columns, rotation=25, ha="right")
        axes.set_yticks(range(len(rows)), rows)
        axes.tick_params(length=0)
        axes.grid(False)
        axes.spines[:].set_visible(False)
        return drawing


def strip(values: Mapping[str, Sequence[float]], x: str, mark: float | None = None) -> Figure | None:
    """Return values as dots, a row a name, with their means as bars; mark: an upright line."""
    values = {name: own for name, own in values.items() if len(own)}
    if not values:
        return None
    with style.drawn(0.9 + 0.34 * len(values)) as (drawing, axes):
        if mark is not None:
            axes.axvline(mark, color=style.SOFT, linestyle=":")
        for y, own in enumerate(values.values()):
            axes.plot(own, [y] * len(own), "o", color=style.BLUE, alpha=0.5, markersize=5)
            axes.plot([np.mean(own)] * 2, [y - 0.28, y + 0.28], color=style.INK, linewidth=2)
        style.rows(axes, list(values))
        axes.set_xlabel(style.wrapped(x))
        return drawing
