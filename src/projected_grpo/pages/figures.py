"""The figures of a question: trajectories, paired differences, dose curves, kept and ablated bars.

Each function takes a computed table and returns a figure, or None where the question has nothing of the kind.
"""

import textwrap

import numpy as np
from matplotlib.figure import Figure
from scipy import stats as scipy_stats

from projected_grpo.cells.config import Config
from projected_grpo.measures.measure import MEASURES
from projected_grpo.measures.table import Line, Table, published_delta
from projected_grpo.pages import style
from projected_grpo.pages.contrasts import is_shown, uninformative
from projected_grpo.pages.dose import dose
from projected_grpo.pages.places_figure import AMONG_PLACEBOS, places_figure

FEW = 5  # seeds below this are drawn one by one: a t-interval of them fills the panel
MANY = 5  # more arms than this are drawn in small panels, one each
# The rates that are drawn along a run and against a dose, with their looks where they share a panel.
DRAWN = {
    "hack": (style.RED, "-"),
    "solve": (style.BLUE, style.DASHES[1]),
    "honest": (style.GREEN, style.DASHES[2]),
}


def _band(series: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray | None]:
    """Return mean and half-width of the 95% t-interval over seeds; [steps] each, no width for one seed.

    A seed without a value at a step (no prompt of that loophole) leaves it to the others.
    """
    values = np.ma.masked_invalid(np.stack(series))
    n = values.count(axis=0)
    mean = values.mean(axis=0).filled(np.nan)
    if len(values) < 2:
        return mean, None
    std = values.std(axis=0, ddof=1).filled(np.nan)
    return mean, scipy_stats.t.ppf(0.975, n - 1) * std / np.sqrt(n)


def _teacher_ends(axes, line: Line) -> None:
    """Mark the step after which a run has no teacher's rows."""
    if last := line.row.cells[0].training.teacher_steps:
        axes.axvline(last + 0.5, color=style.SOFT, linestyle=":", linewidth=1)


def _draw(axes, line: Line, measure: str, **look) -> None:
    by_step, held_out = MEASURES[measure].by_step, line.row.setting.held_out_mode
    if measure == "hack" and held_out:  # what the question is about
        by_step = MEASURES[f"hack_{held_out}"].by_step
    series = [values for values in map(by_step, line.runs) if values is not None]
    if not series:
        return
    mean, half = _band(series)
    steps = np.arange(1, len(mean) + 1)
    axes.plot(steps, mean, **look)
    if 1 < len(series) < FEW:
        for own in series:
            axes.plot(steps, own, color=look["color"], alpha=0.45, linewidth=0.6)
    elif half is not None:
        axes.fill_between(steps, mean - half, mean + half, color=look["color"], alpha=0.16, linewidth=0)


def trajectories(table: Table) -> Figure | None:
    """Hack, solve and honest rate per step, mean over seeds, for every arm.

    Around it its 95% interval, or each seed where there are few.
    """
    lines = [line for line in table.lines if line.runs]
    if not lines:
        return None
    with style.styled():
        return _together(table, lines) if len(lines) <= MANY else _panels(table, lines)


def _together(table: Table, lines: list[Line]) -> Figure:
    drawing = style.figure(2.9)
    panels = drawing.subplots(1, len(DRAWN), sharey=True)
    for axes, measure in zip(panels, DRAWN, strict=True):
        for i, line in enumerate(lines):
            plain = line.row.baseline is None
            look = {"color": style.INK if plain else style.PALETTE[(i - 1) % len(style.PALETTE)]}
            _draw(axes, line, measure, linestyle=style.DASHES[i % len(style.DASHES)], label=line.name, **look)
            _teacher_ends(axes, line)
        axes.set_title(MEASURES[measure].axis)
        style.step_axis(axes)
        style.rate_axis(axes)
    handles, labels = panels[0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside lower center", ncols=min(2, len(lines)))
    return drawing


def _panels(table: Table, lines: list[Line]) -> Figure:
    columns = 3
    rows = -(-len(lines) // columns)
    drawing = style.figure(0.6 + 1.5 * rows)
    grid = drawing.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for axes, line in zip(grid.flat, lines, strict=False):
        if line.row.baseline:
            base = table.line(line.row.baseline)
            _draw(axes, base, "hack", color=style.SOFT, linewidth=1.1, label="hack, baseline")
        for measure, (colour, dash) in DRAWN.items():
            _draw(axes, line, measure, color=colour, linestyle=dash, label=measure)
        _teacher_ends(axes, line)
        axes.set_title(textwrap.fill(line.name, 18, break_on_hyphens=False), fontsize=8)
        style.rate_axis(axes)
    for axes in list(grid.flat)[len(lines) :]:
        axes.set_visible(False)
    for axes in list(grid.flat)[max(0, len(lines) - columns) : len(lines)]:  # nothing stands below them
        axes.tick_params(labelbottom=True)
        style.step_axis(axes)
    found = {}
    for axes in grid.flat:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    drawing.legend(found.values(), found.keys(), loc="outside lower center", ncols=3)
    return drawing


def _published(table: Table, line: Line) -> float | None:
    """Return the paper's difference in the primary measure, where it has that measure."""
    return published_delta(table, line, table.primary) if table.primary in ("hack", "solve") else None


def forest(table: Table, compact: bool = False) -> Figure | None:
    """Paired differences from the baseline with 95% intervals; the paper's value as a diamond.

    Thin dots are seeds. compact: for a third of the page's width, with the legend left to the caption.
    """
    lines = [line for line in (*table.pooled, *table.lines) if table.primary in line.to_baseline]
    if not lines:
        return None
    published = [_published(table, line) for line in lines]
    size = (0.6 + 0.24 * len(lines), 4.3) if compact else (0.95 + 0.3 * len(lines),)
    with style.styled():
        drawing = style.figure(*size)
        axes = drawing.subplots()
        axes.axvline(0, color=style.SOFT, linewidth=1)
        labels = {}
        for y, (line, paper) in enumerate(zip(lines, published, strict=True)):
            pair = line.to_baseline[table.primary]
            colour = style.SOFT if uninformative(table, line) else style.BLUE
            own, base = (each.values[table.primary] for each in (line, table.line(line.row.baseline)))
            seeds = [own[seed] - base[seed] for seed in pair.seeds]
            axes.plot(seeds, [y + 0.22] * len(seeds), ".", color=colour, alpha=0.4, markersize=3)
            if pair.lo is not None:
                axes.plot([pair.lo, pair.hi], [y, y], color=colour, linewidth=2, solid_capstyle="round")
            shown = is_shown(pair)
            name = "Holm p < 0.05" if shown else "Holm p ≥ 0.05 or untested"
            dot = {"color": colour, "markerfacecolor": colour if shown else style.PAPER, "markersize": 7}
            (labels[name],) = axes.plot(pair.delta, y, "o", **dot)
            if paper is not None:
                diamond = {"markerfacecolor": "none", "markersize": 5.5, "markeredgewidth": 1.4}
                (labels["published (Qwen3-4B)"],) = axes.plot(paper, y, "D", color=style.RED, **diamond)
        style.rows(axes, [line.name for line in lines])
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        low, high = axes.get_xlim()
        axes.set_xlim(min(low, -0.1), max(high, 0.1))
        style.difference_axis(axes)
        if compact:
            axes.set_xlabel(style.wrapped(f"difference in {table.about.axis}", 28))
            return drawing
        less = "solving" if table.primary == "solve" else "hacking"
        axes.set_xlabel(style.wrapped(f"difference in {table.about.axis} (left: less {less})"))
        drawing.legend(labels.values(), labels.keys(), loc="outside lower center", ncols=2)
        return drawing


def kept_and_ablated(table: Table) -> Figure | None:
    """Hack and solve rate after the last step with the quarantine kept and ablated."""
    lines = [line for line in table.lines if {"hack_kept", "hack_ablated"} <= set(line.summary)]
    if not lines:
        return None
    with style.styled():
        drawing = style.figure(0.9 + 0.42 * len(lines))
        for axes, what in zip(drawing.subplots(1, 2, sharey=True), ("hack", "solve"), strict=True):
            looks = ((-0.19, "kept", style.BLUE, ""), (0.19, "ablated", style.SKY, "////"))
            for offset, state, colour, hatch in looks:
                found = [line.summary[f"{what}_{state}"] for line in lines]
                errors = [np.nan if s.std is None else s.std for s in found]  # NaN draws nothing
                bar = {"color": colour, "hatch": hatch, "edgecolor": style.INK, "linewidth": 0.4}
                error = {"elinewidth": 1, "ecolor": style.INK, "capsize": 2}
                places, means = np.arange(len(lines)) + offset, [s.mean for s in found]
                axes.barh(
                    places, means, 0.36, xerr=errors, error_kw=error, label=f"quarantine {state}", **bar
                )
            axes.set_title(f"{what} rate")
            axes.set_xlim(0, 1)
            style.rows(axes, [line.name for line in lines])
        drawing.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return drawing


def of_question(table: Table, config: Config) -> dict[str, tuple[Figure, str]]:
    """Return name -> (figure, caption) of all figures that a question has."""
    ns = sorted({len(line.seeds) for line in table.lines if line.seeds})
    seeds = f"n = {'-'.join(map(str, sorted({ns[0], ns[-1]})))} seeds" if ns else ""
    interval, mean, std = " with 95% t-intervals", "mean over seeds", "; bars: one std over seeds"
    if ns == [1]:
        seeds, interval, mean, std = "one seed", "", "one seed", ""
    around = "; thin lines: seeds" if ns and 1 < ns[-1] < FEW else interval.replace("with", "and")
    diamond = diamonds = ""
    if any(_published(table, line) is not None for line in table.lines):
        diamond = " Diamond: published (Qwen3-4B, often one seed)."
        diamonds = " Diamonds: the published value where the paper has one, often of one seed."
    ended = any(line.row.cells[0].training.teacher_steps for line in table.lines)
    ends = " Dotted upright: the teacher's rows end." if ended else ""
    drawn = {
        "summary": (
            forest(table, compact=True),
            f"Difference in {table.about.axis}, paired by seed{interval} ({seeds}). Filled: Holm p < 0.05.{diamond}",
        ),
        "effects": (
            forest(table),
            f"Difference in {table.about.axis} from the baseline, paired by seed{interval} ({seeds}); thin dots: "
            f"seeds.{diamonds}",
        ),
        "places": (places_figure(table), AMONG_PLACEBOS),
        "kept": (
            kept_and_ablated(table),
            f"Rates after the last step with the quarantine kept and ablated ({seeds}){std}.",
        ),
        "dose": (dose(table, config), f"Rates against one knob at a time, {mean}{interval}."),
        "trajectories": (
            trajectories(table),
            f"Hack, solve and honest rate per training step, {mean}{around}.{ends}",
        ),
    }
    return {name: (drawing, caption) for name, (drawing, caption) in drawn.items() if drawing is not None}
