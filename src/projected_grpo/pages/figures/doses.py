"""Figures of rates against how much of something rows have: a number of the question, or the knob of a defence."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from projected_grpo.cells.cell import Row
from projected_grpo.cells.config import Config
from projected_grpo.measures import estimates as table
from projected_grpo.measures import plane as planes
from projected_grpo.measures import trend
from projected_grpo.measures.measure import MEASURES
from projected_grpo.pages.answer import Estimated
from projected_grpo.pages.figures.lines import Line, trajectories

# x of a dose -> its words, its scale, the number of a row; None where it has none
AXES: dict[str, tuple[str, str, Callable[[Row, Config], float | None]]] = {
    "mix": ("share of teacher rollouts", "linear", lambda row, _: row.setting.mix),
    "k": ("axes removed", "log", lambda row, _: row.cells[0].use.k if row.cells[0].use else None),
    "refresh": ("steps between refreshes", "symlog", lambda row, _: row.setting.knob("refresh")),
    "size": ("million parameters", "log", lambda row, config: 10 ** trend.size_of(row, config) / 1e6),
    "rho": ("strength of the planted link", "linear", lambda row, config: trend.link_of(row, config)[1]),
}


GAP = dict.fromkeys(("mean", "lo", "hi"))


def _rates(by_x: Mapping[float, Mapping]) -> Line:
    """Return rates with their intervals, which end where rates do."""
    x = sorted(by_x)
    mean, lo, hi = (np.array([by_x[at][part] for at in x], dtype=float) for part in ("mean", "lo", "hi"))
    return np.array(x), mean, np.clip(lo, 0, 1), np.clip(hi, 0, 1)


def _ticks(axes: Axes, at: Sequence[float], values: Sequence[float]) -> None:
    names = [f"{x:.3g}" for x in values]
    crowded: dict = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(at, names, **(crowded if len("".join(names)) > 20 else {}))


def _lines(made: Estimated, key: str, config: Config) -> list[tuple[str | None, str, str]]:
    """Return the panel of each row, its line and its name, for a number that rows differ in.

    A topic of a link has its own panel, and so have axes that grow with a model; a row of neither is in all (None).
    """
    rows = {name: row for name, row in made.own.rows.items() if not row.population}
    if key == "size":
        series = [(one.name.partition(", "), one.rows) for one in trend.by_size(list(rows.values()), config)]
        return [(panel or None, line, name) for (line, _, panel), own in series for name in own.values()]
    if key == "rho":
        return [(trend.link_of(row, config)[0], trend.label(row), name) for name, row in rows.items()]
    return [("", trend.label(row), name) for name, row in rows.items()]


def dose(made: Estimated, key: str, config: Config, measure: str) -> Figure | None:
    """Return rates against one number that rows differ in, a line a pair set."""
    words, scale, x_of = AXES[key]
    lines = _lines(made, key, config)
    own = list(dict.fromkeys(filter(None, (panel for panel, *_ in lines)))) or [""]
    panels: dict[str, dict[str, dict[float, Mapping]]] = {}  # title -> label -> x -> rate
    for panel, label, name in lines:
        x, line = x_of(made.own.rows[name], config), made.of(name, table.RATE, measure)
        if x is None or line["mean"] is None:
            continue
        for one in own if panel is None else [panel]:
            title = (f"link on {one}" if one and key == "rho" else one) or MEASURES[measure].axis
            panels.setdefault(title, {}).setdefault(label, {}).setdefault(x, line)
    drawn = {
        title: {label: _rates(by_x) for label, by_x in own.items() if len(by_x) > 1}
        for title, own in panels.items()
    }
    drawing = trajectories(drawn, words)
    for axes in drawing.axes if drawing is not None and scale != "linear" else ():
        if axes.get_visible():
            axes.set_xscale(scale)
            ticks = sorted({float(x) for line in axes.get_lines() for x in np.asarray(line.get_xdata())})
            _ticks(axes, ticks, ticks)
            axes.minorticks_off()
    return drawing


# Knobs that say how much of a defence.
DOSES = ("scale", "beta", "cost", "weight", "alpha", "k", "head_start")
SIDES = {"hack": planes.HACK, "honest": planes.HONEST}


def doses(made: Estimated) -> Figure | None:
    """Return known hack and known honest against the one knob that rows of a defence differ in, a panel each.

    Doses without a seed in common are not joined: what lies between them may be their seeds'.
    """
    panels: dict[str, dict[str, Line]] = {}
    ticks: dict[str, list[float]] = {}
    for key in DOSES:
        groups: dict[str, dict[float, str]] = {}
        for name, row in made.own.rows.items():
            x, use = row.setting.knob(key), row.cells[0].use
            x = use.k if key == "k" and x is None and use else x
            if x is not None and all(made.own.of(name, measure) for measure in SIDES.values()):
                groups.setdefault(trend.alike(row.setting, key), {})[x] = name
        for by_x in groups.values():
            first = next(iter(by_x.values()))
            setting = made.own.rows[first].setting
            base = f"{setting.arm}, {key}"
            title = next(
                t for t in (base, f"{base}, {setting.source}", f"{base}: {first}") if t not in panels
            )
            if len(by_x) > 1:
                ticks[title], names = sorted(by_x), [by_x[x] for x in sorted(by_x)]
                seeds = [made.own.of(name, planes.HACK).keys() for name in names]
                apart = (i + 0.5 for i, (one, other) in enumerate(pairwise(seeds)) if not one & other)
                gaps = dict.fromkeys(apart, GAP)
                panels[title] = {
                    label: _rates(gaps | {i: made.of(name, table.RATE, m) for i, name in enumerate(names)})
                    for label, m in SIDES.items()
                }
    drawing = trajectories(panels, "")
    for axes, own in zip(drawing.axes if drawing is not None else (), ticks.values(), strict=False):
        _ticks(axes, range(len(own)), own)
    return drawing
