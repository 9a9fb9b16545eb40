"""Figures of the detector (Q18): AUROC over the steps, beside random directions, and where runs train against it."""

from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from projected_grpo.measures.columns import DETECTOR_SCORES
from projected_grpo.measures.detector import ALIGNMENT, CONCEPT, ORACLE, Rankings
from projected_grpo.measures.table import Line, Table
from projected_grpo.pages import style
from projected_grpo.pages.detector import first

Of = Callable[[Line, int], dict[int, float]]  # row, window -> number by seed


def _axis(axes: Axes, windows: list[tuple[int, int]], chance: bool = True) -> None:
    axes.set_xticks(range(len(windows)), [f"{a}–{b}" for a, b in windows], fontsize=7.5)
    axes.set_xlabel("steps")
    style.rate_axis(axes)
    if chance:
        axes.axhline(0.5, color=style.SOFT, linewidth=0.8)


def _curve(axes: Axes, line: Line, n: int, of: Of, **look) -> None:
    """Draw means over seeds, where any has a value."""
    values = [of(line, i) for i in range(n)]
    points = [(i, sum(v.values()) / len(v)) for i, v in enumerate(values) if v]
    if points:
        axes.plot(*zip(*points, strict=True), **look)


def detection(table: Table, found: Rankings) -> Figure | None:
    """AUROC in plain training, a panel a score: the direction, random ones, placebos, the oracle."""
    line = first(table)
    windows = found.windows.get(line.name) if line else None
    if not windows:
        return None
    with style.styled():
        drawing = style.figure(3.4)
        panels = drawing.subplots(1, 2, sharey=True)
        for axes, score in zip(panels, (CONCEPT, ALIGNMENT), strict=True):
            bands = [(i, found.band(line, score, i)) for i in range(len(windows))]
            known = [(i, *band) for i, band in bands if band]
            if known:
                x, low, high = zip(*known, strict=True)
                axes.fill_between(x, low, high, color=style.GRID, label="random directions, 95%")
            shades = (style.ORANGE, style.SKY, style.GREEN, style.PINK)
            for colour, (population, names) in zip(shades, found.populations.items(), strict=False):
                for number, name in enumerate(names):
                    _curve(
                        axes, line, len(windows), _of(found, score, name), color=colour, linewidth=0.7, alpha=0.8,
                        label=None if number else population,
                    )  # fmt: skip
            looks = ((found.subject, style.BLUE, "-", "o"), (ORACLE, style.INK, style.DASHES[1], "s"))
            for name, colour, dash, marker in looks:
                look = {"color": colour, "linestyle": dash, "marker": marker, "label": name}
                _curve(axes, line, len(windows), _of(found, score, name), **look)
            _axis(axes, windows)
            axes.set_title(DETECTOR_SCORES[score])
        panels[0].set_ylabel("AUROC")
        drawing.legend(
            *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=7.5
        )
        return drawing


def _of(found: Rankings, score: str, direction: str, key: str = "auroc") -> Of:
    return lambda line, window: found.of(line, score, direction, window, key)


def groups(table: Table) -> list[tuple[Line, list[Line]]]:
    """Return each baseline with the rows that are held against it, other baselines aside."""
    names = list(dict.fromkeys(line.row.baseline for line in table.lines if line.row.baseline))
    return [
        (table.line(name), [o for o in table.lines if o.row.baseline == name and o.name not in names])
        for name in names
    ]


def gamed(table: Table, found: Rankings) -> Figure | None:
    """AUROC and what the threshold of step 0 keeps, a column a baseline: it and the rows trained against the score."""
    shown = [(base, rows) for base, rows in groups(table) if found.has(base)]
    if not shown:
        return None
    rows = (
        ("AUROC, concept score", CONCEPT, "auroc"),
        ("AUROC, alignment", ALIGNMENT, "auroc"),
        ("precision, step-0 threshold", CONCEPT, "precision"),
        ("recall, step-0 threshold", CONCEPT, "recall"),
    )
    with style.styled():
        drawing = style.figure(9)
        panels = drawing.subplots(len(rows), len(shown), squeeze=False, sharey="row")
        for at, (title, score, key) in zip(panels, rows, strict=True):
            for axes, (base, others) in zip(at, shown, strict=True):
                windows, of = found.windows[base.name], _of(found, score, found.subject, key)
                _curve(axes, base, len(windows), of, color=style.INK, linewidth=2.2, label=base.name)
                for line, look in looks(others):
                    _curve(axes, line, len(windows), of, label=line.name, linewidth=1.2, **look)
                _axis(axes, windows, chance=key == "auroc")
                axes.set_title(title, fontsize=8)
        for axes in panels[-1]:
            if axes.get_legend_handles_labels()[0]:
                # One column: two are wider than a panel, and the layout then has no room left for the panels.
                style.legend_below(axes, 0.35, handlelength=3)
        return drawing


def looks(lines: list[Line]) -> list[tuple[Line, dict]]:
    """Return the look of each row: a colour an arm, a dash a row of it; controls are thin and grey."""
    arms = list(dict.fromkeys(line.row.setting.arm for line in lines))
    seen: dict[tuple[str, bool], int] = {}
    found = []
    for line in lines:
        arm, control = line.row.setting.arm, line.row.is_control
        number = seen[arm, control] = seen.get((arm, control), -1) + 1
        colour = style.SOFT if control else style.PALETTE[arms.index(arm) % len(style.PALETTE)]
        dash = style.DASHES[(number + arms.index(arm) if control else number) % len(style.DASHES)]
        found.append(
            (line, {"color": colour, "linestyle": dash, "marker": "." if control else "o", "markersize": 3})
        )
    return found
