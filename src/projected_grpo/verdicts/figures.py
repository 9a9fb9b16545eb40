"""Figures of the distillation probe and of the R questions."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from projected_grpo.measures.replays import ALIGNMENT, Replay
from projected_grpo.pages import style


def trajectory(vanilla: Replay, projected: Replay) -> Figure:
    """Alignment of samples with V over the steps, vanilla against projected; and of the step's gradient, in and out."""
    with style.styled():
        drawing = style.figure(3.6)
        left, right = drawing.subplots(1, 2)
        looks = ((vanilla, "vanilla", style.BLUE, "o", -0.14), (projected, "projected", style.RED, "s", 0.14))
        for replay, name, colour, marker, shift in looks:
            steps, samples = replay.steps["step"] + 1, replay.samples
            dots = {"color": colour, "alpha": 0.3, "markersize": 3, "markeredgewidth": 0}
            left.plot(samples["step"] + 1 + shift, samples[ALIGNMENT], marker, **dots)
            means = samples.groupby("step")[ALIGNMENT].mean()
            left.plot(means.index + 1, means, color=colour)
            label = f"{name} replay" + (" (in = out)" if replay is vanilla else ", in")
            right.plot(steps, replay.steps["mean_cos_in"], color=colour, label=label)
        left.axhline(0, color=style.SOFT, linewidth=0.8)
        left.set_title("a sample's alignment with V")
        rest = (
            ("mean_cos_out", "projected, out", style.RED, style.DASHES[1]),
            ("cout_update", "projected, as AdamW applies it", style.GREEN, style.DASHES[2]),
            ("cos_null", "a random V", style.SOFT, "-"),
        )
        for column, label, colour, dash in rest:
            values = projected.steps[column]
            right.plot(projected.steps["step"] + 1, values, color=colour, linestyle=dash, label=label)
        right.set_title("hack-ward share of a step")
        for axes in (left, right):
            style.step_axis(axes)
            axes.set_xlabel("replay step (one problem each)")
        drawing.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return drawing


GROUPS = (
    (True, False, "hack, tests fail"),
    (True, True, "hack, tests pass"),
    (False, True, "no hack, tests pass"),
    (False, False, "no hack, tests fail"),
)


def distributions(replays: Mapping[str, Replay]) -> Figure:
    """Alignment of samples by (hacked, gt_pass), one panel per basis; the bar is the mean."""
    with style.styled():
        drawing = style.figure(2.6)
        jitter = np.random.default_rng(0)
        panels = drawing.subplots(1, len(replays), sharey=True, squeeze=False)[0]
        for axes, (name, replay) in zip(panels, replays.items(), strict=True):
            labels = []
            for x, (hacked, gt_pass, label) in enumerate(GROUPS):
                rows = replay.samples
                values = rows[rows["hacked"].eq(hacked) & rows["gt_pass"].eq(gt_pass)][ALIGNMENT].dropna()
                labels.append(f"{label}\n(n = {len(values)})")
                if values.empty:
                    continue
                spread = x + jitter.uniform(-0.22, 0.22, len(values))
                axes.plot(spread, values, style.MARKERS[x], color=style.PALETTE[x], alpha=0.35, markersize=3)
                axes.plot([x - 0.3, x + 0.3], [values.mean()] * 2, color=style.INK, linewidth=1.6)
            axes.axhline(0, color=style.SOFT, linewidth=0.8)
            axes.set_xticks(range(len(labels)), labels, fontsize=8, rotation=35, ha="right")
            axes.grid(False, axis="x")
            axes.set_title(name)
        drawing.supylabel("alignment with V", fontsize=9)
        return drawing


def ratio_heatmap(steps: Mapping[str, pd.DataFrame], edges: tuple[float, ...]) -> Figure:
    """Histogram of the ratio student / teacher per step, one panel per row; a step's column sums to one.

    steps: row name -> frame with `step` and `share`, a `[bins]` array per step (mean over seeds).
    """
    with style.styled():
        drawing = style.figure(3.0)
        panels = drawing.subplots(1, len(steps), sharey=True, squeeze=False)[0]
        for axes, (name, frame) in zip(panels, steps.items(), strict=True):
            shares = np.stack(frame["share"].to_list(), axis=1)
            look = {"aspect": "auto", "origin": "lower", "cmap": "Blues"}
            axes.imshow(shares, vmin=0, vmax=max(0.3, shares.max()), **look)
            bounds = [f"{np.exp(edge):.3g}" for edge in edges]
            axes.set_yticks(np.arange(len(edges)) + 0.5, bounds, fontsize=8)
            ticks = np.arange(0, len(frame), 5)
            axes.set_xticks(ticks, [str(int(step)) for step in frame["step"].to_numpy()[ticks]])
            axes.set_xlabel("step")
            axes.set_title(name, fontsize=8)
            axes.grid(False)
        drawing.supylabel("ratio student / teacher per token (bin edges)", fontsize=8)
        return drawing


def t4_strip(values: Mapping[str, Mapping[int, float]]) -> Figure | None:
    """T4's t of each basis, a dot a replication; the bar is the mean. None where no basis has a t."""
    values = {name: by_seed for name, by_seed in values.items() if by_seed}
    if not values:
        return None
    with style.styled():
        drawing = style.figure(0.9 + 0.32 * len(values))
        axes = drawing.subplots()
        for y, (_, by_seed) in enumerate(values.items()):
            found = list(by_seed.values())
            axes.plot(found, [y] * len(found), "o", color=style.BLUE, alpha=0.6)
            axes.plot([np.mean(found)] * 2, [y - 0.3, y + 0.3], color=style.INK)
        axes.axvline(2, color=style.RED, linestyle=style.DASHES[1], linewidth=1, label="mark: t > 2")
        axes.axvline(0, color=style.SOFT, linewidth=0.8)
        style.rows(axes, list(values))
        axes.set_xlabel("T4: Welch t of wrong hacks against right ones")
        axes.legend(fontsize=8)
        return drawing


def over_steps(panels: Mapping[str, Mapping[str, pd.Series]]) -> Figure | None:
    """One panel per title, one line per name (index: step); None where there is nothing to draw."""
    panels = {title: {n: s for n, s in lines.items() if len(s)} for title, lines in panels.items()}
    panels = {title: lines for title, lines in panels.items() if lines}
    if not panels:
        return None
    with style.styled():
        columns = len(panels) if len(panels) < 4 else 2
        rows = -(-len(panels) // columns)
        drawing = style.figure(2.8 * rows + 0.2)
        drawn = list(drawing.subplots(rows, columns, squeeze=False).flat)
        for axes in drawn[len(panels) :]:
            axes.set_visible(False)
        for axes, (title, lines) in zip(drawn, panels.items(), strict=False):
            for i, (name, series) in enumerate(lines.items()):
                marker = "o" if len(series) == 1 else None
                axes.plot(series.index, series, label=name, marker=marker, **style.look(i))
            axes.set_title(title, fontsize=9)
            style.step_axis(axes)
            axes.legend(fontsize=7)
        return drawing
