"""Dose curves: hack and solve rate against one knob, from rows that differ in that knob alone."""

import numpy as np
from matplotlib.figure import Figure

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
    with style.styled():
        labels = {}
        drawing = style.figure(3.4, max(4.2, min(style.WIDTH, 3.6 * len(found))))
        panels = drawing.subplots(1, len(found), squeeze=False)[0]
        for axes, (knob, groups) in zip(panels, found.items(), strict=True):
            for i, (name, group) in enumerate(groups):
                for measure, dash, filled in LOOKS:
                    _curve(axes, group, measure, f"{measure}, {name}", i, dash, filled)
            axes.set_title("rates")
            axes.set_xlabel(AXIS[knob])
            style.rate_axis(axes)
            values = sorted({value for _, group in groups for value, _ in group})
            axes.set_xticks(values, [f"{value:g}" for value in values])
            labels |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
        drawing.legend(labels.values(), labels.keys(), loc="outside lower center", ncols=2)
        return drawing


def _curve(axes, group: list[tuple[float, Line]], measure: str, label: str, i: int, dash, filled) -> None:
    points = [(x, line.summary[measure]) for x, line in group if measure in line.summary]
    if not points:
        return
    colour = style.PALETTE[i % len(style.PALETTE)]
    errors = [np.nan if s.lo is None else s.mean - s.lo for _, s in points]  # NaN draws nothing
    look = {"marker": style.MARKERS[i % len(style.MARKERS)], "linestyle": dash, "capsize": 2.5}
    look["markerfacecolor"] = colour if filled else style.PAPER
    x, means = [x for x, _ in points], [s.mean for _, s in points]
    axes.errorbar(x, means, yerr=errors, color=colour, label=label, **look)
