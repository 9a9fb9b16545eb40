"""Dose curves: hack and solve rate against one knob, from rows that differ in that knob alone."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from projected_grpo.cells.config import Config
from projected_grpo.cells.setting import Setting
from projected_grpo.measures.table import Line, Table
from projected_grpo.pages import style


def _flat(setting: Setting) -> dict:
    """Return a row's settings and the knobs of its arm."""
    return setting.model_dump(exclude={"knobs"}) | setting.knobs.model_dump()


def _knobs(line: Line, config: Config) -> dict:
    """Return the numeric knobs of a row, and what else tells its curve from another one."""
    setting, cell = line.row.setting, line.row.cells[0]
    own = config.knobs(setting.basis).model_dump() if setting.basis else {}
    values = {"mix": setting.mix, "k": cell.settings.use and cell.settings.use.k, "tau": own.get("tau")}
    values["pairs"] = own["n_pairs"] - own["n_heldout"] if own else None
    varied = ("n_pairs", "n_heldout", "top_k", "tau", "k", "mix", "basis")
    every = [*_flat(setting).items(), *own.items()]
    same = str(sorted((key, str(value)) for key, value in every if key not in varied))
    name = own.get("pairs", setting.arm) if own.get("control", "none") == "none" else own["control"]
    return values | {"curve": same, "name": name}


# Measure, dashes, filled markers.
LOOKS = (("hack", "-", True), ("solve", style.DASHES[1], False), ("honest", style.DASHES[2], False))
# By knob; the others must agree along a curve.
AXIS = {"mix": "share of teacher rollouts", "k": "axes removed (k)", "tau": "singular-value cut (tau)"}
AXIS |= {"pairs": "pairs used"}


def curves(table: Table, config: Config) -> dict[str, list[tuple[str, list[tuple[float, Line]]]]]:
    """Return knob -> named curves, each at least three (value, row) that differ in that knob alone."""
    known = [(line, _knobs(line, config)) for line in table.lines if line.cells]
    found = {}
    for knob in AXIS:
        fixed = [other for other in AXIS if other != knob]
        groups: dict[tuple, dict[float, Line]] = {}
        for line, values in known:
            if values[knob] is None:
                continue
            key = (values["curve"], *(values[other] for other in fixed))
            groups.setdefault((values["name"], key), {}).setdefault(values[knob], line)
        long = [(name, sorted(group.items())) for (name, _), group in groups.items() if len(group) >= 3]
        names = [name for name, _ in long]
        # Curves of one pair set, as of two gates, are told apart by a row of each.
        long = [
            (name if names.count(name) == 1 else f"{name} ({points[0][1].name} ...)", points)
            for name, points in long
        ]
        if long:
            found[knob] = long
    return found


def dose(table: Table, config: Config) -> Figure | None:
    """Hack, solve and honest rate against one knob at a time, with 95% intervals over seeds where there are two."""
    found = curves(table, config)
    if not found:
        return None
    names = list(dict.fromkeys(name for groups in found.values() for name, _ in groups))
    with style.styled():
        drawing = style.figure(3.4, max(4.2, min(style.WIDTH, 3.6 * len(found))))
        panels = drawing.subplots(1, len(found), squeeze=False)[0]
        for axes, (knob, groups) in zip(panels, found.items(), strict=True):
            for name, group in groups:
                for measure, dash, filled in LOOKS:
                    _curve(axes, group, measure, _look(names.index(name), dash, filled))
            axes.set_title("rates")
            axes.set_xlabel(AXIS[knob])
            style.rate_axis(axes)
            values = sorted({value for _, group in groups for value, _ in group})
            axes.set_xticks(values, [f"{value:g}" for value in values])
        rows = [(name, _look(i, LOOKS[0][1], True)) for i, name in enumerate(names)]
        measures = [(measure, _look(0, dash, filled, style.SOFT)) for measure, dash, filled in LOOKS]
        longest = max(len(rows), len(measures))
        drawing.legend(  # a column each
            handles=[
                Line2D([], [], label=label, **look)
                for column in (rows, measures)
                for label, look in [*column, *[(" ", {"linestyle": "none"})] * (longest - len(column))]
            ],
            loc="outside lower center",
            ncols=2,
        )
        return drawing


def _look(i: int, dash, filled: bool, colour: str = "") -> dict:
    """Return how a curve is drawn: colour and marker tell the rows, dashes and filling the measure."""
    colour = colour or style.PALETTE[i % len(style.PALETTE)]
    fill = colour if filled else style.PAPER
    marker = style.MARKERS[i % len(style.MARKERS)]
    return {"color": colour, "marker": marker, "linestyle": dash, "markerfacecolor": fill}


def _curve(axes: Axes, group: list[tuple[float, Line]], measure: str, look: dict) -> None:
    points = [(x, line.summary[measure]) for x, line in group if measure in line.summary]
    if not points:
        return
    errors = [np.nan if s.lo is None else s.mean - s.lo for _, s in points]  # NaN draws nothing
    axes.errorbar([x for x, _ in points], [s.mean for _, s in points], yerr=errors, capsize=2.5, **look)
