"""R6's verdict: is the effect in LoRA space at least 80% of that in SVD space, at matched vanilla arms?"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from projected_grpo.measures import stats
from projected_grpo.pages.markdown import grid
from projected_grpo.pages.table import Table
from projected_grpo.pages.text import NONE, listing, p_value, paired_text, rate
from projected_grpo.verdicts.probe_twins import (
    Sight,
    compare_t,
    difference,
    effect_by_seed,
    t4_grid,
)
from projected_grpo.verdicts.twins import Twins

SHARE = 0.8
MATCHED = 0.10  # vanilla arms whose mean rates differ by no more count as matched


def vanilla_differences(table: Table, reference: str, other: str) -> tuple[stats.Paired | None, ...]:
    """Return the differences of two vanilla arms in hack and solve rate, other - reference."""
    return tuple(
        difference(table.line(other), table.line(reference), measure) for measure in ("hack", "solve")
    )


def are_matched(differences: tuple[stats.Paired | None, ...]) -> bool:
    """Whether the rates of two vanilla arms are known and near enough."""
    return all(found is not None and abs(found.delta) <= MATCHED for found in differences)


def matched_sentence(table: Table, pairs: list[Twins]) -> str:
    """Say whether the two vanilla arms have the same hack and solve rates."""
    bases = {(pair.reference.baseline, pair.other.baseline) for pair in pairs}
    parts = []
    for reference, other in sorted(bases):
        found = vanilla_differences(table, reference, other)
        if None in found:
            parts.append(f"`{other}` and `{reference}` share no seed")
            continue
        hack, solve = map(paired_text, found)
        parts.append(
            f"`{other}` against `{reference}`: hack {hack}, solve {solve}, "
            f"{'matched' if are_matched(found) else 'NOT matched'} (mark: {MATCHED:.2f} on either)"
        )
    return f"Vanilla arms: {listing(parts)}." if parts else ""


def pair_sentence(table: Table, pair: Twins) -> str:
    """Compare the two effects of a twin row on the hack rate, over the seeds that both have."""
    svd, lora = effect_by_seed(table, pair.reference), effect_by_seed(table, pair.other)
    common = sorted(set(svd) & set(lora))
    if not common:
        return f"`{pair.other.name}`: runs are missing."
    svd, lora = ({seed: effect[seed] for seed in common} for effect in (svd, lora))
    means = {name: float(np.mean(list(effect.values()))) for name, effect in (("svd", svd), ("lora", lora))}
    text = f"`{pair.other.name}` {means['lora']:+.3f} against `{pair.reference.name}` {means['svd']:+.3f}"
    shown = table.line(pair.reference.name).holm.get("hack")
    if means["svd"] >= 0 or shown is None or shown >= stats.ALPHA:
        return text + ": the SVD arm itself shows no reduction, so there is none to match."
    share = means["lora"] / means["svd"]
    # Above zero: LoRA falls short of the share. Testing the combination keeps the seeds paired.
    shortfall = stats.paired(lora, {seed: SHARE * value for seed, value in svd.items()})
    text += f": {100 * share:.0f}% of the SVD effect"
    if shortfall.lo is not None:
        text += f" (LoRA minus {SHARE} SVD {paired_text(shortfall)}, p {p_value(shortfall.p)})"
    if are_matched(vanilla_differences(table, pair.reference.baseline, pair.other.baseline)):
        text += f"; {_verdict(share, shortfall)}"
    else:
        text += "; no verdict: vanilla arms not matched"
    solve = difference(table.line(pair.other.name), table.line(pair.reference.name), "solve")
    return text + f"; solve rate {paired_text(solve)} against the SVD arm."


def _verdict(share: float, shortfall: stats.Paired) -> str:
    """Say whether LoRA reaches the share, and whether the interval of the shortfall agrees."""
    mark = f"{100 * SHARE:.0f}% of it"
    if shortfall.lo is None:
        return f"{'at least' if share >= SHARE else 'less than'} {mark}, without an interval"
    if share >= SHARE:
        return f"at least {mark}, the interval {'agrees' if shortfall.hi <= 0 else 'leaves it open'}"
    return f"less than {mark}, " + ("a clean negative" if shortfall.lo > 0 else "the interval leaves it open")


def _column_mean(table: Table, cells: tuple[str, ...], column: str, part: slice) -> float | None:
    values = [table.runs[cell].steps[column][part] for cell in cells]
    values = [value[~np.isnan(value)].mean() for value in values if not np.isnan(value).all()]
    return float(np.mean(values)) if values else None


def mean_by_step(table: Table, cells: tuple[str, ...], column: str) -> pd.Series:
    """Return step -> mean of the column over the runs that have a value there; empty without a run."""
    runs = [table.runs[cell].steps for cell in cells]
    if not runs:
        return pd.Series(dtype=float)
    return pd.Series(stats.mean_by_step([steps[column] for steps in runs]), index=runs[0]["step"].astype(int))


def overlap_by_step(table: Table, cells: tuple[str, ...]) -> pd.Series:
    """Return step -> mean overlap with the basis before, for refreshing runs; empty for others."""
    return mean_by_step(table, cells, "basis_overlap").dropna()


def drift_grid(table: Table, drifts: Mapping[str, dict]) -> tuple[list[str], list[list[str]]]:
    """Return header and text cells: what the basis sees over the run, and what a fresh one shares with it.

    drifts: cell id -> what `stages.contrast.drift` measured after the run.
    """
    header = ["row", "cin first 5", "cin last 5", "null", "cout", "cout_update / cin"]
    header += ["overlap with fresh", "random", "overlap per refresh, first", "last"]
    rows = []
    for line in table.lines:
        if "cin" not in line.summary:
            continue
        first = _column_mean(table, line.cells, "cin", slice(None, 5))
        last = _column_mean(table, line.cells, "cin", slice(-5, None))
        update = _column_mean(table, line.cells, "cout_update", slice(-5, None))
        found = [drifts[cell] for cell in line.cells if cell in drifts]
        fresh = [
            float(np.mean([d[key] for d in found])) if found else None
            for key in ("overlap_fresh", "overlap_null")
        ]
        steps = overlap_by_step(table, line.cells)
        ends = [float(steps.iloc[0]), float(steps.iloc[-1])] if len(steps) else [None, None]
        rows.append(
            [
                line.name,
                rate(first),
                rate(last),
                rate(line.summary["cin_null"].mean),
                rate(line.summary["cout"].mean),
            ]
            + [f"{update / last:.2f}" if update is not None and last else NONE]
            + [rate(value) for value in (*fresh, *ends)]
        )
    return header, rows


def sections(
    table: Table, pairs: list[Twins], sights: Mapping[str, Sight], drifts: Mapping[str, dict]
) -> list[str]:
    """Return the Markdown that follows R6's table."""
    seen = dict.fromkeys((pair.other.setting.basis, pair.reference.setting.basis) for pair in pairs)
    return [
        "## Verdict",
        " ".join([matched_sentence(table, pairs), *(pair_sentence(table, pair) for pair in pairs)]),
        "**T4 on the same pools.** " + ". ".join(compare_t(sights[a], sights[b]) for a, b in seen) + ".",
        grid(*t4_grid(sights)),
        "**Drift of the basis.** cin: hack-ward share of the gradient (null: a random V of the same shape); one_sided "
        "makes cout 0 by algebra. Overlap with fresh: of the frozen V with one extracted on the run's last weights "
        "(1: unchanged); a run keeps no weights of steps between, so there is this one point and no curve of it. "
        "Overlap per refresh, also in the figure: in a refreshing run, of each new V with the V that it replaces (at "
        "the first refresh the one of the start); later ones say how V moves between refreshes, not since then.",
        grid(*drift_grid(table, drifts)),
    ]


def drift_series(table: Table) -> dict[str, dict[str, pd.Series]]:
    """Return title -> row -> values by step: cin of the frozen arms, overlap of the refreshing ones."""
    seen, overlaps = {}, {}
    for line in table.lines:
        if "cin" not in line.summary:
            continue
        if line.row.setting.knob("refresh"):
            overlaps[line.name] = overlap_by_step(table, line.cells)
        else:
            seen[line.name] = mean_by_step(table, line.cells, "cin")
    return {"hack-ward share (cin), frozen V": seen, "overlap of a new V with the one before": overlaps}
