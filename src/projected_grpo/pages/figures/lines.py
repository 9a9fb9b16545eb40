"""Figures of lines with their intervals, a panel each."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from projected_grpo.pages import style

# x, then mean, lower and upper end of its interval, all `[points]`
Line = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def trajectories(panels: Mapping[str, Mapping[str, Line]], x: str, rates: bool = True) -> Figure | None:
    """Return lines with their intervals, a panel each: panel -> line -> (x, mean, lo, hi); few lines a panel."""
    there = {
        name: {label: line for label, line in own.items() if len(line[0])} for name, own in panels.items()
    }
    panels = {name: lines for name, lines in there.items() if lines}
    if not panels:
        return None
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    several: dict = {"nrows": rows, "ncols": columns, "sharey": rates, "squeeze": False}
    with style.drawn(0.9 + 1.9 * rows, **several) as (drawing, grid):
        handles: dict[str, Line2D] = {}
        for axes, (name, lines) in zip(grid.flat, panels.items(), strict=False):
            for label, (at, mean, lo, hi) in lines.items():
                look = style.look(list(dict.fromkeys([*handles, label])).index(label))
                marker = {"marker": "o", "markersize": 3.5} if len(at) <= 12 else {}
                (handles[label],) = axes.plot(at, mean, **look, **marker)
                if not np.isnan(lo).all():
                    axes.fill_between(at, lo, hi, color=look["color"], alpha=0.15, linewidth=0)
            axes.set_title(style.wrapped(name, 60 // columns), fontsize=8.5)
            axes.set_xlabel(x)
        for axes in list(grid.flat)[len(panels) :]:
            axes.set_visible(False)
        if rates:
            style.percent(grid[0, 0], "y")
            grid[0, 0].set_ylabel("%")
        drawing.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=2)
        return drawing
