"""The row of a step in `steps.parquet`: rates of its rollouts, alignment with V, the off-policy ratio."""

from collections.abc import Sequence

import torch
from torch import Tensor

from projected_grpo.environment.facts import Verdict
from projected_grpo.environment.levers import KIND
from projected_grpo.method.adapter import Parameters
from projected_grpo.method.gradients import Gradient
from projected_grpo.method.loss import CLIP
from projected_grpo.method.projection import fired, mean_alignment, mean_null_alignment
from projected_grpo.training.ratio import RATIO_EDGES
from projected_grpo.training.rollouts import Group


def rate(rows: Sequence[Verdict], key: str) -> float | None:
    """Return the share of rows whose verdict has `key`; None without rows or where no row has a verdict on it."""
    values = [row[key] for row in rows if row.get(key) is not None]
    return sum(values) / len(values) if values else None


def outcome_columns(groups: Sequence[Group], modes: Sequence[str]) -> dict:
    """Return the step's rates over student (`_s`) and teacher (`_t`) rows, and the hack rate per mode."""
    live = [row.row for group in groups for row in group.live]
    teacher = [row.row for group in groups for row in group.teacher]
    columns = {
        "hack_s": rate(live, "hacked"),
        "exploit_s": rate(live, "exploited"),
        "solve_s": rate(live, "gt_pass"),
        "compile_s": rate(live, "can_compile"),
        "hack_t": rate(teacher, "hacked"),
        "solve_t": rate(teacher, "gt_pass"),
    }
    for mode in modes:
        columns[f"hack_{mode}"] = rate(
            [r.row for g in groups if KIND[g.problem.mode] == mode for r in g.live], "hacked"
        )
    lengths = [len(row.tokens) for group in groups for row in group.live]
    columns["tokens_mean"] = sum(lengths) / len(lengths)
    columns["tokens_generated"] = sum(lengths)
    return columns


RATIO = ("ratio_mean", "ratio_clip_low", "ratio_clip_high", "ratio_zeroed", "ratio_hist")


def ratio_columns(log_ratio: Tensor, A: Tensor) -> dict:
    """Return the mean ratio, shares of tokens beyond the clip's bounds, and the histogram over RATIO_EDGES.

    log_ratio, A: `[tokens]`; `ratio_zeroed` counts those without a gradient where the ratio enters the loss: beyond the
    bound that their advantage pushes towards. All null where there are no tokens.
    """
    if not len(log_ratio):
        return dict.fromkeys(RATIO)
    ratio = log_ratio.double().exp()
    zeroed = ((ratio < 1 - CLIP) & (A < 0)) | ((ratio > 1 + CLIP) & (A > 0))
    bins = torch.bucketize(log_ratio, torch.tensor(RATIO_EDGES))
    return {
        "ratio_mean": float(ratio.mean()),
        "ratio_clip_low": float((ratio < 1 - CLIP).double().mean()),
        "ratio_clip_high": float((ratio > 1 + CLIP).double().mean()),
        "ratio_zeroed": float(zeroed.double().mean()),
        "ratio_hist": torch.bincount(bins, minlength=len(RATIO_EDGES) + 1).tolist(),
    }


ALIGNMENT = ("cin", "cin_s", "cin_t", "cin_null", "cout", "cout_update", "fired")


def alignment_columns(
    axes: dict[str, Tensor] | None, gradient: Gradient, kept: Parameters, applied: Parameters
) -> dict[str, float | None]:
    """Return cin of the gradient and of its student's and teacher's share, cout of what is kept and applied, `fired`.

    All null where there are no axes.
    """
    if not axes:
        return dict.fromkeys(ALIGNMENT)

    def aligned(vectors: Parameters) -> float | None:
        """Null where nothing points anywhere: a step without a teacher, or without any advantage."""
        known = any(bool(vector.any()) for vector in vectors.values())
        return mean_alignment(vectors, axes) if known else None

    values = (
        aligned(gradient.total),
        aligned(gradient.student),
        aligned(gradient.teacher),
        mean_null_alignment(axes),
        aligned(kept),
        aligned(applied),
        fired(gradient.total, axes),
    )
    return dict(zip(ALIGNMENT, values, strict=True))
