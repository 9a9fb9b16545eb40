"""Rows among the placebos of their format, as a figure."""

from math import sqrt

from matplotlib.figure import Figure

from projected_grpo.measures import stats
from projected_grpo.measures.table import Table
from projected_grpo.pages import style
from projected_grpo.pages.places import is_placed, populations

AMONG_PLACEBOS = (
    "Each row among the pair sets without a hack of its format (grey dots; upright: their mean). Bar: where one more "
    "of them lies with 95% probability. Filled: the row is told apart from them (Holm p < 0.05)."
)


def places_figure(table: Table) -> Figure | None:
    """Draw each row's difference to the baseline on the population of placebos that it has a place in.

    The bar is the 95% interval of one more draw, mean +- t sqrt(1 + 1/m) std at m - 1 degrees of freedom: a row beyond
    it has an unadjusted p below 0.05.
    """
    lines = [line for line in table.lines if table.primary in line.place]
    if not lines:
        return None
    drawn = populations(table)
    with style.styled():
        drawing = style.figure(0.8 + 0.3 * len(lines))
        axes = drawing.subplots()
        axes.axvline(0, color=style.SOFT, linewidth=1)
        for y, line in enumerate(lines):
            place = line.place[table.primary]
            if place.m > 1:
                half = stats.critical(place.m) * sqrt(1 + 1 / place.m) * place.std
                axes.plot([place.mean - half, place.mean + half], [y, y], color=style.GRID, linewidth=7)
            axes.plot([place.mean] * 2, [y - 0.22, y + 0.22], color=style.SOFT, linewidth=1.6)
            others = [o.to_baseline[table.primary].delta for o in drawn.get(line.row.place_in, ())]
            axes.plot(others, [y] * len(others), ".", color=style.SOFT, markersize=4)
            face = style.BLUE if is_placed(line, table.primary) else style.PAPER
            axes.plot(place.value, y, "o", color=style.BLUE, markerfacecolor=face, markersize=7)
        style.rows(axes, [f"{line.name} ({line.row.place_in})" for line in lines])
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(style.wrapped(f"difference in {table.about.axis}"))
        axes.locator_params(axis="x", nbins=6)
        return drawing
