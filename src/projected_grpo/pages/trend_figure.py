"""Effects, overlaps and cosines against size or link, a row of panels an axis."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from projected_grpo.cells.config import Config
from projected_grpo.measures import stats
from projected_grpo.measures.table import Table
from projected_grpo.measures.trend import SIZE, Overlaps, Points, Series, overlap_points, points
from projected_grpo.pages import style
from projected_grpo.pages.trend import marks, others


def _curve(axes: Axes, found: Points, look: dict, shift: float, label: str) -> None:
    """Draw means over seeds with their 95% t-intervals, `shift` to the side so that none hides another."""
    own = {x: stats.summarise(list(values.values())) for x, values in found.items() if values}
    if not own:
        return
    errors = [np.nan if s.lo is None else s.mean - s.lo for s in own.values()]  # NaN draws nothing
    axes.errorbar(
        [x + shift for x in own],
        [s.mean for s in own.values()],
        yerr=errors,
        markersize=4,
        capsize=1.5,
        elinewidth=0.8,
        label=label,
        **look,
    )


def trend(table: Table, found: Sequence[Series], overlaps: Overlaps, config: Config) -> Figure | None:
    """Overlap and cosine with the exploits' own basis, and the effect, against each axis; None without a series."""
    held = [series for series in found if points(table, series)]
    if not held:
        return None
    names = list(dict.fromkeys(series.name for series in held))
    axes_of = list(dict.fromkeys(series.axis for series in held))
    with style.styled():
        drawing = style.figure(0.7 + 2.3 * len(axes_of) + 0.18 * (len(names) // 3))
        panels = drawing.subplots(len(axes_of), 3, squeeze=False, sharex="row")
        labels: dict[str, object] = {}
        for row, axis in zip(panels, axes_of, strict=True):
            own = [series for series in held if series.axis == axis]
            ticks = _ticks(table, own, config, axis)
            step = 0.012 * (max(ticks) - min(ticks))
            for series in own:
                i = names.index(series.name)
                control = table.line(next(iter(series.rows.values()))).row.is_control
                look = style.look(i) | {"marker": style.MARKERS[i % len(style.MARKERS)]}
                look |= {"color": style.SOFT} if control else {}
                shift = step * (i - (len(names) - 1) / 2)
                for panel, key in zip(row, ("overlap", "cosine"), strict=False):
                    if series in others(table, own):
                        _curve(panel, overlap_points(table, series, overlaps, key), look, shift, series.name)
                _curve(row[2], points(table, series), look, shift, series.name)
            _null(row[0], table, own, overlaps)
            for panel, title in zip(row, _titles(table), strict=True):
                panel.set_title(style.wrapped(title, 16), fontsize=8)
                panel.tick_params(axis="y", labelsize=7.5)
                panel.axhline(0, color=style.SOFT, linewidth=0.8)
                panel.set_xticks(list(ticks), list(ticks.values()), fontsize=7.5)
                panel.set_xlabel("parameters" if axis == SIZE else f"rho, {axis}")
                labels |= {n: h for h, n in zip(*panel.get_legend_handles_labels(), strict=True)}
        order = [name for name in [*names, "random axes"] if name in labels]
        drawing.legend(
            [labels[name] for name in order], order, loc="outside lower center", ncols=3, fontsize=7.5
        )
        return drawing


def _titles(table: Table) -> tuple[str, str, str]:
    return "overlap with own_mode", "cosine with own_mode", f"Δ {table.about.head}"


def _ticks(table: Table, own: Sequence[Series], config: Config, axis: str) -> Mapping[float, str]:
    named = marks(table, config, axis)
    return {x: named.get(x, f"{x:g}") for x in sorted({x for series in own for x in series.rows})}


def _null(panel: Axes, table: Table, own: Sequence[Series], overlaps: Overlaps) -> None:
    """Draw what random axes overlap by, once per k."""
    drawn = set()
    for series in own:
        null = overlap_points(table, series, overlaps, "overlap_null")
        line = tuple((x, float(np.mean(list(values.values())))) for x, values in null.items())
        if line and line not in drawn:
            drawn.add(line)
            panel.plot(
                *zip(*line, strict=True), color=style.SOFT, linestyle=":", linewidth=1, label="random axes"
            )
