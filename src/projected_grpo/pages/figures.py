"""The figures of pages, one function a kind, each from numbers that a page already has.

They are as wide as a telephone's screen, and grey tells their marks apart as well as colour does.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import sqrt

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from projected_grpo.cells.cell import TEACHERS, Row
from projected_grpo.cells.config import Config
from projected_grpo.measures import estimates as table
from projected_grpo.measures import plane as planes
from projected_grpo.measures import stats, trend
from projected_grpo.measures.measure import MEASURES
from projected_grpo.pages import style, words
from projected_grpo.pages.answer import SHOWN, Estimated

MOST = 24  # rows of a forest: beyond it the smallest differences stand in the table alone
# x, then mean, lower and upper end of its interval, all `[points]`
Line = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _percent(axes: Axes, which: str = "x") -> None:
    getattr(axes, f"{which}axis").set_major_formatter(lambda value, _: f"{100 * value:.0f}")


def _differences(axes: Axes, names: Sequence[str], measure: str) -> None:
    """Make the axes one of differences in a measure, a row a name."""
    style.rows(axes, names)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    # Few enough marks that their signed numbers do not touch.
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5, 10]))
    _percent(axes)
    axes.set_xlabel(style.wrapped(f"change in {MEASURES[measure].axis}, points"))


def forest(made: Estimated, measure: str) -> Figure | None:
    """Return the differences to the baseline with 95% intervals, sorted; filled where shown, grey for controls."""
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
        _differences(axes, [line["row"] for line in lines], measure)
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
            members = [row.name for row in own.rows.values() if row.population == line["to"]]
            others = [other["delta"] for other in made.known(members, table.BASELINE)]
            mean, m = float(np.mean(others)), len(others)
            half = stats.critical(m) * sqrt(1 + 1 / m) * line["std"]
            look: dict = {"color": style.GRID, "linewidth": 8, "solid_capstyle": "butt"}
            (handles["95% of placebos"],) = axes.plot([mean - half, mean + half], [y, y], **look)
            (handles["a placebo"],) = axes.plot(others, [y] * m, "|", color=style.SOFT, markersize=7)
            face = style.BLUE if line["verdict"] in SHOWN else style.PAPER
            value = made.of(line["row"], table.BASELINE)["delta"]
            look = {"color": style.BLUE, "markersize": 7}
            teachers = own.rows[line["row"]].exploits == TEACHERS
            mark, of = ("s", "the teacher's exploits") if teachers else ("o", "a pair set")
            (handles[of],) = axes.plot(value, y, mark, markerfacecolor=face, **look)
            (handles["told apart"],) = axes.plot([], [], "o", **look)
        _differences(axes, [f"{line['row']} ({line['to']})" for line in found], own.about.name)
        drawing.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=2)
        return drawing


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
            _percent(grid[0, 0], "y")
            grid[0, 0].set_ylabel("%")
        drawing.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=2)
        return drawing


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
        groups: dict[tuple, dict[float, str]] = {}
        for name, row in made.own.rows.items():
            knobs, use = row.setting.knobs.model_dump(exclude_none=True), row.cells[0].use
            x = knobs.pop(key, None)
            x = use.k if key == "k" and x is None and use else x
            if x is not None and all(made.own.of(name, measure) for measure in SIDES.values()):
                groups.setdefault((row.setting.arm, str(knobs)), {})[x] = name
        for (arm, _), by_x in groups.items():
            source = made.own.rows[next(iter(by_x.values()))].setting.source
            title = f"{arm}, {key}" if f"{arm}, {key}" not in panels else f"{arm}, {key}, {source}"
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


TOLD, UNTOLD = "given: truth, simulated monitor", "given: pairs, a sentence, a critic"
EXPLOITS = "given: the teacher's exploits"
PLAIN, ALONE, CONTROL = "plain training", "no teacher, for reference", "control"
LOOKS = {  # kind of a point -> marker, edge, face
    TOLD: ("^", style.RED, style.RED),
    EXPLOITS: ("D", style.ORANGE, style.ORANGE),
    UNTOLD: ("o", style.BLUE, style.BLUE),
    CONTROL: ("o", style.SOFT, style.PAPER),
    PLAIN: ("s", style.INK, style.INK),
    ALONE: ("s", style.INK, style.PAPER),
}
ROOT = ("function", (lambda x: np.sqrt(np.clip(x, 0, None)), lambda x: np.square(x)))


def plane(made: Estimated, labels: Sequence[str]) -> Figure | None:
    """Return known hack to the right (a root scale: much lies near 0) and known honest upward.

    Hollow grey points are controls, the cross the base, the line plain training and less of it; `labels` have
    their name beside them. Rows that share no seed stand in panels of their own, each with the line of its seeds.
    """
    parts = [made.own.among(seeds) for seeds in planes.blocks(made.own)]
    places = [_places(own) for own in parts]
    if not parts:
        return None
    top = max([0.1, *(x for found in places for x, _ in found.values())]) * 1.08
    several: dict = {"nrows": len(parts), "sharex": True, "sharey": True, "squeeze": False}
    with style.drawn(1.3 + 3.3 / len(parts) ** 0.3 * len(parts), **several) as (drawing, grid):
        for axes, own, found in zip(grid.flat, parts, places, strict=True):
            axes.set_xscale(ROOT[0], functions=ROOT[1])
            for label, (marker, edge, face) in LOOKS.items():
                if some := [place for name, place in found.items() if _kind(own, name) == label]:
                    look: dict = {"color": edge, "markerfacecolor": face, "markersize": 6, "clip_on": False}
                    axes.plot(*zip(*some, strict=True), marker, label=label, **look)
            if len(parts) > 1:
                axes.set_title(f"seeds {words.seed_list(own.seeds)}", fontsize=8.5)
            axes.set_ylabel("% that solve without a hack")
        lines = [_training_less(axes, own) for axes, own in zip(grid.flat, parts, strict=True)]
        axes.set_xlim(-0.0005, top)
        axes.set_xticks([tick for tick in (0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1) if tick <= top])
        axes.set_ylim(bottom=0)
        _percent(axes)
        _percent(axes, "y")
        axes.set_xlabel("% of rollouts that hack, after training (root scale)")
        handles: dict = {}
        for axes in grid.flat:
            handles |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        drawing.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=2)
        for axes, found, line in zip(grid.flat, places, lines, strict=True):
            named = {name: found[name] for name in labels if name in found}
            style.name_points(drawing, axes, named, [*found.values(), *line])
        return drawing


def _training_less(axes: Axes, own: table.Measured) -> list[tuple[float, float]]:
    """Draw what plain training gives at any dose of itself, and the base; return points along the line."""
    front, along = planes.frontier_of(own), []
    if front is not None:
        x, y = front.curve()
        axes.plot(x, y, color=style.SOFT, linewidth=1.6, label="plain training, less of it")
        axes.plot(*front.means(), "|", color=style.SOFT, markersize=9, label="its doses and early ends")
        at = np.linspace(x[0] ** 0.5, x[-1] ** 0.5, 60) ** 2
        along = list(zip(at, np.interp(at, x, y), strict=True))
    if own.base:
        base = ([stats.mean(own.base[name]) or 0.0] for name in SIDES.values())
        axes.plot(*base, "x", color=style.INK, markersize=8, label="before training", linestyle="none")
    return along


def _places(own: table.Measured) -> dict[str, tuple[float, float]]:
    """Return known hack and known honest of each row that has both, means over its seeds."""
    every = filter(None, [*planes.defending(own), planes.vanilla_of(own)])
    found = {}
    for name in every:
        hack, honest = (stats.mean(own.of(name, measure)) for measure in SIDES.values())
        if hack is not None and honest is not None:
            found[name] = (hack, honest)
    return found


def _kind(own: table.Measured, name: str) -> str:
    row = own.rows[name]
    if name == planes.vanilla_of(own):
        return PLAIN
    if not row.setting.mix and own.rows[planes.vanilla_of(own) or name].setting.mix:
        return ALONE
    kinds = {planes.NOTHING: CONTROL, planes.EXPLOITS: EXPLOITS}
    kinds |= dict.fromkeys(("monitor", "oracle", "rightly graded clean run"), TOLD)
    return kinds.get(planes.must_give(row), UNTOLD)


def matrix(shares: np.ndarray, rows: Sequence[str], columns: Sequence[str], x: str) -> Figure:
    """Return shares `[rows, columns]` as squares, each with its number."""
    with style.drawn(1.3 + 0.36 * len(shares)) as (drawing, axes):
        shades = LinearSegmentedColormap.from_list("shares", [style.PAPER, style.BLUE])
        for (y, column), share in np.ndenumerate(shares):
            look: dict = {"facecolor": shades(share), "edgecolor": style.GRID, "linewidth": 0.8}
            axes.add_patch(Rectangle((column - 0.48, y - 0.48), 0.96, 0.96, **look))
            ink = style.PAPER if share > 0.5 else style.SOFT
            axes.text(column, y, f"{100 * share:.0f}", ha="center", va="center", color=ink)
        axes.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(rows) - 0.5, -0.5), xlabel=x)
        axes.set_xticks(range(len(columns)), columns, rotation=25, ha="right")
        axes.set_yticks(range(len(rows)), rows)
        axes.tick_params(length=0)
        axes.grid(False)
        axes.spines[:].set_visible(False)
        return drawing


def strip(values: Mapping[str, Sequence[float]], x: str, mark: float | None = None) -> Figure | None:
    """Return values as dots, a row a name, with their means as bars; mark: an upright line."""
    values = {name: own for name, own in values.items() if len(own)}
    if not values:
        return None
    with style.drawn(0.9 + 0.34 * len(values)) as (drawing, axes):
        if mark is not None:
            axes.axvline(mark, color=style.SOFT, linestyle=":")
        for y, own in enumerate(values.values()):
            axes.plot(own, [y] * len(own), "o", color=style.BLUE, alpha=0.5, markersize=5)
            axes.plot([np.mean(own)] * 2, [y - 0.28, y + 0.28], color=style.INK, linewidth=2)
        style.rows(axes, list(values))
        axes.set_xlabel(style.wrapped(x))
        return drawing


def of_question(made: Estimated, config: Config) -> Figure | None:
    """Return the figure that a question asks for; None where there is no number to draw."""
    asked = made.own.question.figure
    measure, drawing = asked.measure or made.own.about.name, None
    if asked.kind == "plane":
        return plane(made, asked.labels)
    if asked.kind == "places":
        drawing = places(made)
    elif asked.kind == "dose":
        drawing = dose(made, asked.x, config, measure) if asked.x else doses(made)
    return drawing or forest(made, measure)
