"""The plane of defences: hacking to the right, honest work upward."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from projected_grpo.measures import plane as planes
from projected_grpo.measures import stats
from projected_grpo.measures.measured import Measured
from projected_grpo.pages import style, words
from projected_grpo.pages.answer import Estimated

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
    their name beside them. Points are of the seeds that all rows have (`plane.panels`). Where there are none, rows
    that share no seed stand in panels of their own, each with the line of its seeds.
    """
    parts = planes.panels(made.own)
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
        style.percent(axes)
        style.percent(axes, "y")
        axes.set_xlabel("% of rollouts that hack, after training (root scale)")
        handles: dict = {}
        for axes in grid.flat:
            handles |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        drawing.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=2)
        for axes, found, line in zip(grid.flat, places, lines, strict=True):
            named = {name: found[name] for name in labels if name in found}
            style.name_points(drawing, axes, named, [*found.values(), *line])
        return drawing


def _training_less(axes: Axes, own: Measured) -> list[tuple[float, float]]:
    """Draw what plain training gives at any dose of itself, and the base; return points along the line."""
    front, along = planes.frontier_of(own), []
    if front is not None:
        x, y = front.curve()
        axes.plot(x, y, color=style.SOFT, linewidth=1.6, label="plain training, less of it")
        axes.plot(*front.means(), "|", color=style.SOFT, markersize=9, label="its doses and early ends")
        at = np.linspace(x[0] ** 0.5, x[-1] ** 0.5, 60) ** 2
        along = list(zip(at, np.interp(at, x, y), strict=True))
    if own.base:
        base = ([stats.mean(own.base[name]) or 0.0] for name in (planes.HACK, planes.HONEST))
        axes.plot(*base, "x", color=style.INK, markersize=8, label="before training", linestyle="none")
    return along


def _places(own: Measured) -> dict[str, tuple[float, float]]:
    """Return known hack and known honest of each row that has both, means over its seeds."""
    found = {}
    for name in planes.points(own):
        hack, honest = (stats.mean(own.of(name, measure)) for measure in (planes.HACK, planes.HONEST))
        if hack is not None and honest is not None:
            found[name] = (hack, honest)
    return found


def _kind(own: Measured, name: str) -> str:
    row = own.rows[name]
    if name == planes.vanilla_of(own):
        return PLAIN
    if not row.setting.mix and own.rows[planes.vanilla_of(own) or name].setting.mix:
        return ALONE
    kinds = {planes.NOTHING: CONTROL, planes.EXPLOITS: EXPLOITS}
    kinds |= dict.fromkeys(("monitor", "oracle", "rightly graded clean run"), TOLD)
    return kinds.get(planes.must_give(row), UNTOLD)
