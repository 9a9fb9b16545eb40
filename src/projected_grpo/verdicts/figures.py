"""Figures of the distillation probe and of the R questions."""

from collections.abc import Mapping

import numpy as np
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
