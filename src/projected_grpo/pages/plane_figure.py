"""The plane of defences as a figure: known hack to the right, known honest upward, training less as a line.

Colour says what an arm acts on, the marker what it must be given; each point has its name beside it, so that neither
has to be seen. The drawing is as wide as a small screen, where its letters stay legible.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import get_args

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from projected_grpo.arms import Family
from projected_grpo.measures.plane import (
    BASE,
    GIVEN,
    HACK,
    HONEST,
    Curve,
    Frontier,
    curves,
    defences,
    knobs,
    must_give,
)
from projected_grpo.measures.table import Line, Table
from projected_grpo.pages import style

ACTING = [family for family in get_args(Family) if family not in ("none", "less")]
COLOURS = dict(
    zip(ACTING, (style.SKY, style.RED, style.PINK, style.ORANGE, style.BLUE, style.GREEN), strict=True)
)
MARKERS = dict(zip(GIVEN, ("o", "v", "s", "X", "D", "^", "*", "P"), strict=True))
SIZE = style.WIDTH, 6.2  # inches
Box = tuple[float, float, float, float]  # in points: left, bottom, right, top


def _placed(lines: Iterable[Line]) -> list[Line]:
    return [line for line in lines if HACK in line.summary and HONEST in line.summary]


def _spread(axes: Axes, line: Line, colour: str) -> None:
    """Draw a row's seeds as thin dots and its two 95% intervals."""
    hack, honest = line.values[HACK], line.values[HONEST]
    seeds = sorted(set(hack) & set(honest))
    look = {"color": colour, "alpha": 0.35}
    axes.plot(
        [hack[s] for s in seeds], [honest[s] for s in seeds], ".", markersize=2, linestyle="none", **look
    )
    x, y = line.summary[HACK], line.summary[HONEST]
    if x.lo is not None:
        axes.plot([x.lo, x.hi], [y.mean, y.mean], linewidth=0.8, **look)
    if y.lo is not None:
        axes.plot([x.mean, x.mean], [y.lo, y.hi], linewidth=0.8, **look)


def _point(axes: Axes, line: Line, small: bool = False) -> None:
    colour = COLOURS.get(line.row.setting.defence.family, style.INK)
    marker, control = MARKERS[must_give(line)], line.row.is_control
    size = (10 if marker == "*" else 6) * (0.6 if control or small else 1)
    face = style.PAPER if control else colour
    axes.plot(
        line.summary[HACK].mean,
        line.summary[HONEST].mean,
        marker,
        color=colour,
        markerfacecolor=face,
        markersize=size,
        markeredgewidth=0.8,
        zorder=4,
    )


def _frontier(axes: Axes, front: Frontier | None) -> dict[str, tuple[float, float]]:
    """Draw the frontier; return the places of its points by name."""
    if front is None:
        return {}
    axes.plot(*front.curve(), color=style.SOFT, linewidth=1.4, zorder=2)
    hack, honest = (np.mean(list(of.values()), axis=0) for of in (front.hack, front.honest))
    for name, x, y in zip(front.names, hack, honest, strict=True):
        marker = {"marker": "x" if name == BASE else "o", "markersize": 6 if name == BASE else 4}
        axes.plot(x, y, color=style.INK, linestyle="none", zorder=3, **marker)
    return {name: (x, y) for name, x, y in zip(front.names, hack, honest, strict=True)}


def places(
    points: Sequence[tuple[float, float]], texts: Sequence[str], room: Box, letter: float
) -> list[tuple[float, float] | None]:
    """Return where the texts begin (left, middle), in points: near their own, off every other point and text.

    points: where they belong, the rarest first; room: what they stay in; letter: width of one. None where there is no
    such place.
    """
    taken: list[Box] = [(x - 4, y - 4, x + 4, y + 4) for x, y in points]
    found: list[tuple[float, float] | None] = [None] * len(points)
    # Those that find room nearby come first: a name from afar would take it from them.
    for reach in ((6, 12, 20, 30), (42, 56, 70, 84)):
        for number, ((x, y), text) in enumerate(zip(points, texts, strict=True)):
            if found[number] is not None:
                continue
            for left, middle in _spots(x, y, letter * len(text), letter, reach):
                box = (left, middle - letter, left + letter * len(text), middle + letter)
                inside = box[0] >= room[0] and box[1] >= room[1] and box[2] <= room[2] and box[3] <= room[3]
                if inside and not any(_overlap(box, other) for other in taken):
                    found[number] = left, middle
                    taken.append(box)
                    break
    return found


def _spots(
    x: float, y: float, width: float, half: float, reach: Sequence[int]
) -> Iterator[tuple[float, float]]:
    """Yield where a text of this width and half height could begin, the nearest first."""
    for away, side, rise in product(reach, ("right", "left", "middle"), (0, 1, -1)):
        if side != "middle" or rise:
            left = {"right": x + away, "left": x - away - width, "middle": x - width / 2}[side]
            yield left, y + rise * (away + (half if side == "middle" else 0))


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _name(axes: Axes, named: dict[str, tuple[float, float]], size: float = 8) -> None:
    """Write names beside their points, with a thin line where they stand away."""
    scale = 72 / axes.figure.dpi
    to_paper = axes.transData
    points = [tuple(to_paper.transform(xy) * scale) for xy in named.values()]
    box = axes.bbox
    room = (box.x0 * scale, box.y0 * scale, box.x1 * scale + 4, box.y1 * scale + 4)
    spots = places(points, list(named), room, size * 0.56)
    for name, (x, y), spot in zip(named, points, spots, strict=True):
        if spot is not None:
            at, text = (spot[0] - x, spot[1] - y), {"fontsize": size, "va": "center", "zorder": 5}
            far = abs(at[1]) > 9 or not -9 - size * 0.56 * len(name) <= at[0] <= 9
            line = {"arrowstyle": "-", "color": style.SOFT, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3}
            axes.annotate(
                name, named[name], at, textcoords="offset points", arrowprops=line if far else None, **text
            )


def _settle(drawing: Figure) -> None:
    """Lay the figure out for good: names are placed by where points are on paper."""
    drawing.draw_without_rendering()
    drawing.set_layout_engine("none")


def plane(table: Table, front: Frontier | None) -> Figure | None:
    """Return the plane of a table; None where no row can be placed."""
    lines = _placed(defences(table))
    if not lines:
        return None
    with style.styled():
        drawing = style.figure(SIZE[1], SIZE[0])
        axes = drawing.subplots()
        named = _frontier(axes, front)
        for line in lines:
            _spread(axes, line, COLOURS.get(line.row.setting.defence.family, style.INK))
        for line in lines:
            _point(axes, line)
        _axes(axes)
        drawing.legend(handles=_legend(lines), loc="outside lower center", ncols=3, fontsize=8)
        named |= {
            line.name: (line.summary[HACK].mean, line.summary[HONEST].mean)
            for line in lines
            if not line.row.is_control
        }
        _settle(drawing)
        _name(axes, named)
        return drawing


def _axes(axes: Axes) -> None:
    axes.set_xlabel("known hack: loopholes used, after training")
    axes.set_ylabel("known honest: solved without them")
    _from_zero(axes)


def _from_zero(axes: Axes) -> None:
    """Begin both axes a little before zero, where no rate lies, so that points at zero are drawn whole."""
    axes.set_xlim(left=-0.02)
    axes.set_ylim(bottom=-0.02)


def _legend(lines: list[Line]) -> list[Line2D]:
    families = {line.row.setting.defence.family for line in lines}
    given = {must_give(line) for line in lines}
    bare = {"linestyle": "none", "markersize": 6}
    found = [
        Line2D([], [], color=c, marker="s", label=name, **bare)
        for name, c in COLOURS.items()
        if name in families
    ]
    found += [
        Line2D([], [], color=style.INK, marker=m, markerfacecolor="none", label=f"given: {name}", **bare)
        for name, m in MARKERS.items()
        if name in given
    ]
    if any(line.row.is_control for line in lines):
        look = {"markerfacecolor": style.PAPER, "linestyle": "none", "markersize": 4}
        found.append(Line2D([], [], color=style.SOFT, marker="s", label="small, hollow: random", **look))
    return [*found, Line2D([], [], color=style.SOFT, label="plain training, less of it")]


def of_table(table: Table) -> list[Curve]:
    """Return the curves of a table's defences."""
    return curves((line.name, line.row.setting.arm, knobs(line)) for line in _placed(defences(table)))


def dose_curves(table: Table, front: Frontier | None) -> Figure | None:
    """Return the doses of each arm on the plane, a panel each, with their values; None without a curve."""
    found = of_table(table)
    if not found:
        return None
    with style.styled():
        columns = 3
        rows = -(-len(found) // columns)
        drawing = style.figure(0.4 + 1.75 * rows, SIZE[0])
        panels = drawing.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for axes, curve in zip(panels.flat, found, strict=False):
            lines = [table.line(name) for name in curve.rows]
            order = sorted(
                zip(curve.values, lines, strict=True), key=lambda pair: (pair[0] is None, pair[0] or 0)
            )
            _frontier(axes, front)
            colour = COLOURS.get(lines[0].row.setting.defence.family, style.INK)
            xy = [(line.summary[HACK].mean, line.summary[HONEST].mean) for _, line in order]
            if all(value is not None for value, _ in order):
                axes.plot(*zip(*xy, strict=True), color=colour, linewidth=1)
            for _, line in order:
                _spread(axes, line, colour)
                _point(axes, line, small=True)
            axes.set_title(f"{curve.arm}: {curve.knob}", fontsize=8.5)
            axes.tick_params(labelsize=8)
        _from_zero(panels[0, 0])  # all share their limits, which are fixed here: no panel may come after
        for axes in list(panels.flat)[len(found) :]:
            axes.set_visible(False)
        drawing.supxlabel("known hack", fontsize=9)
        drawing.supylabel("known honest", fontsize=9)
        _settle(drawing)
        for axes, curve in zip(panels.flat, found, strict=False):
            lines = [table.line(name) for name in curve.rows]
            values = ["default" if value is None else f"{value:g}" for value in curve.values]
            at = [(line.summary[HACK].mean, line.summary[HONEST].mean) for line in lines]
            _name(axes, dict(zip(values, at, strict=True)), size=8)
        return drawing
