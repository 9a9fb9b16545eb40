"""Figures of differences in a measure, a row a name: to the baseline, and among placebos."""

from collections.abc import Sequence
from math import sqrt

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from projected_grpo.cells.cell import TEACHERS
from projected_grpo.measures import estimates as table
from projected_grpo.measures import stats
from projected_grpo.measures.measure import MEASURES
from projected_grpo.measures.plane import LOOK
from projected_grpo.pages import style
from projected_grpo.pages.answer import SHOWN, Estimated

MOST = 24  # rows of a forest: beyond it the smallest differences stand in the table alone


def _differences(axes: Axes, names: Sequence[str], measure: str) -> None:
    """Make the axes one of differences in a measure, a row a name."""
    style.rows(axes, names)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    # Few enough marks that their signed numbers do not touch.
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5, 10]))
    style.percent(axes)
    axes.set_xlabel(style.wrapped(f"change in {MEASURES[measure].axis}, points"))


def forest(made: Estimated, measure: str) -> Figure | None:
    """Return the differences to the baseline with 95% intervals, sorted; filled where shown, grey for controls.

    A row of fewer seeds than a look says how many.
    """
    lines = made.changes(measure) or made.known(made.own.rows, table.ITSELF, measure)
    largest = sorted(lines, key=lambda line: -abs(line["delta"]))[:MOST]
    lines = sorted(largest, key=lambda line: line["delta"])
    if not lines:
        return None
    with style.drawn(0.8 + 0.25 * len(lines)) as (drawing, axes):
        axes.axvline(0, color=style.SOFT, linewidth=1)
        for y, line in enumerate(lines):
            colour = style.BLUE if line["row"] in made.own.claims else style.SOFT
            if line["lo"] is not None:
                axes.plot([line["lo"], line["hi"]], [y, y], color=colour, linewidth=2, solid_capstyle="round")
            face = colour if line["verdict"] in SHOWN else style.PAPER
            mark = "s" if made.own.rows[line["row"]].exploits == TEACHERS else "o"
            axes.plot(line["delta"], y, mark, color=colour, markerfacecolor=face, markersize=7)
        low, high = axes.get_xlim()
        axes.set_xlim(max(min(low, -0.1), -1.02), min(max(high, 0.1), 1.02))
        few = {line["row"]: f" (n = {line['n']})" for line in lines if line["n"] < LOOK}
        _differences(axes, [line["row"] + few.get(line["row"], "") for line in lines], measure)
        return drawing


def places(made: Estimated) -> Figure | None:
    """Return each row's difference among the placebos of its format: dots, and where one more of them would lie."""
    own = made.own
    found = sorted(made.known(own.rows, table.PLACE), key=lambda line: line["delta"])
    if not found:
        return None
    with style.drawn(1.0 + 0.3 * len(found)) as (drawing, axes):
        axes.axvline(0, color=style.SOFT, linewidth=1)
        handles = {}
        for y, line in enumerate(found):
            row = own.rows[line["row"]]
            value, *others = table.among_placebos(own, row, own.about.name)[1].values()
            mean, m = float(np.mean(others)), len(others)
            half = stats.critical(m) * sqrt(1 + 1 / m) * line["std"]
            look: dict = {"color": style.GRID, "linewidth": 8, "solid_capstyle": "butt"}
            (handles["95% of placebos"],) = axes.plot([mean - half, mean + half], [y, y], **look)
            (handles["a placebo"],) = axes.plot(others, [y] * m, "|", color=style.SOFT, markersize=7)
            face = style.BLUE if line["verdict"] in SHOWN else style.PAPER
            look = {"color": style.BLUE, "markersize": 7}
            teachers = row.exploits == TEACHERS
            mark, of = ("s", "the teacher's exploits") if teachers else ("o", "a pair set")
            (handles[of],) = axes.plot(value, y, mark, markerfacecolor=face, **look)
            (handles["told apart"],) = axes.plot([], [], "o", **look)
        _differences(axes, [f"{line['row']} ({line['to']})" for line in found], own.about.name)
        drawing.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=2)
        return drawing
