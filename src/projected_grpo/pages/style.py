"""The look of every figure: one palette that colour-blind readers and a grey printer can tell apart.

Figures are SVG with live text on a white background.
"""

import io
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

INK, SOFT, GRID, PAPER = "#1c1e21", "#6b7078", "#d9dce1", "#fefefe"
BLUE, ORANGE, GREEN, PINK, SKY, RED = "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"
PALETTE = (BLUE, RED, GREEN, PINK, ORANGE, SKY)
DASHES = ("-", (0, (5, 2)), (0, (1, 1.3)), (0, (4, 1.5, 1, 1.5)), (0, (7, 2)), (0, (2, 1)))
WIDTH = 4.8  # inches: at the width of a telephone its letters are still 8 pixels high

RC: dict = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": SOFT,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
    "lines.markersize": 5.5,
    "axes.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "projected-grpo",
    "figure.constrained_layout.w_pad": 0.08,
    "figure.constrained_layout.h_pad": 0.06,
}


@contextmanager
def drawn(height: float, **panels: Any) -> Iterator[tuple[Figure, Any]]:
    """Yield a figure, its height in inches, and its axes to draw on; panels: of several, as for `Figure.subplots`."""
    with matplotlib.rc_context(RC):
        drawing = Figure(figsize=(WIDTH, height), layout="constrained")
        yield drawing, drawing.subplots(**panels)


def wrapped(label: str, letters: int = 36) -> str:
    """Return the label of an axis in lines that a narrow drawing has room for."""
    return textwrap.fill(label, letters)


def rows(axes: Axes, names: Sequence[str]) -> None:
    """Make the y axis one row a name, the first at the top."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(False, axis="y")


def look(i: int) -> dict:
    """Return colour and dashes of the i-th line of a panel; none recurs in 36."""
    return {"color": PALETTE[i % len(PALETTE)], "linestyle": DASHES[(i + i // len(PALETTE)) % len(DASHES)]}


def name_points(
    drawing: Figure,
    axes: Axes,
    named: Mapping[str, tuple[float, float]],
    others: Sequence[tuple[float, float]],
) -> None:
    """Write names beside their points, each where it lies on no point and no other name, with a line from afar.

    Points that touch have one label, beside the rightmost. No such line crosses another name.
    """
    drawing.draw_without_rendering()
    drawing.set_layout_engine("none")
    scale, letter = 72 / drawing.dpi, 4.9

    def at(point: tuple[float, float]) -> np.ndarray:
        return axes.transData.transform(point) * scale

    taken = [Bbox([at(point) - 4, at(point) + 4]) for point in others]
    room = Bbox.from_extents(*(scale * (axes.bbox.extents + np.array([0, 0, 6, 0]))))
    together: dict[tuple[float, float], list[str]] = {}
    written: list[Bbox] = []
    for name, point in sorted(named.items(), key=lambda one: -one[1][0]):
        near = [other for other in together if np.hypot(*(at(point) - at(other))) < 11]
        together.setdefault(near[0] if near else point, []).append(name)
    for point, names in together.items():
        name, (x, y) = ", ".join(names), at(point)
        width = letter * len(name)
        for away, side, rise in product((7, 14, 24, 36, 52, 70), ("right", "left", "middle"), (0, 1, -1)):
            left = {"right": x + away, "left": x - away - width, "middle": x - width / 2}[side]
            middle = y + rise * (away + 3)
            box = Bbox.from_bounds(left, middle - 5, width, 10)
            outside = not (room.contains(*box.min) and room.contains(*box.max))
            way = np.linspace((x, y), (left + width / 2, middle), 40 if away > 7 else 0)
            led = [Bbox([step - 1, step + 1]) for step in way]
            crosses = any(step.count_overlaps(written) for step in led)
            if (side == "middle" and not rise) or outside or crosses or box.count_overlaps(taken):
                continue
            written.append(box)
            taken += [box, *led]
            line = {"arrowstyle": "-", "color": SOFT, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3}
            look: dict = {"arrowprops": line if away > 7 else None, "textcoords": "offset points"}
            axes.annotate(name, point, (left - x, middle - y), va="center", fontsize=8.5, zorder=6, **look)
            break


def to_svg(drawing: Figure) -> str:
    """Return the figure as a stand-alone SVG file with a white background; equal figures give equal text."""
    buffer = io.StringIO()
    with matplotlib.rc_context(RC):
        drawing.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None}, facecolor="white")
    # Matplotlib names the font it measured with; a reader's own sans-serif is narrower: nothing overflows.
    return re.sub(r"'DejaVu Sans'[^;\"]*", "sans-serif", buffer.getvalue())


def percent(axes: Axes, which: str = "x") -> None:
    """Write the numbers of an axis in percent."""
    getattr(axes, f"{which}axis").set_major_formatter(lambda value, _: f"{100 * value:.0f}")
