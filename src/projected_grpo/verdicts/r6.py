"""R6: is the effect in LoRA space at least 80% of that in SVD space, at matched vanilla arms?"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from projected_grpo.files import read_json
from projected_grpo.measures import stats
from projected_grpo.measures.table import Line, Table
from projected_grpo.pages.blocks import Grid, Listing, Paragraph, Source, grid
from projected_grpo.pages.contrasts import is_shown
from projected_grpo.pages.text import NONE, p_value, paired_text, rate
from projected_grpo.verdicts.context import Context
from projected_grpo.verdicts.figures import over_steps, t4_strip
from projected_grpo.verdicts.twins import Twins, difference, read, replay_files, sources, t4_blocks
from projected_grpo.verdicts.verdict import Verdict, of_table

KNOB = "adapter"
SHARE = 0.8
MATCHED = 0.10  # vanilla arms whose mean rates differ by no more count as matched
DRIFT = (
    "Drift: cin is the hack-ward share of the gradient (null: along a random V of the same shape). The gate one_sided "
    "makes cout 0 by algebra.",
    "Overlap with fresh: of the frozen V with one extracted on the run's weights (1: unchanged), here after its last "
    "step; the figure has every fifth step. A LoRA run keeps its last weights alone, so there it has one point.",
    "Overlap per refresh: in a refreshing run, of each new V with the one that it replaces (at the first refresh the "
    "one of the start). Later ones say how V moves between refreshes, not since then.",
)


def drifts(context: Context) -> list[str]:
    """Return the drift files of every frozen basis with content."""
    frozen = [cell for cell in context.question.cells if cell.basis and not cell.setting.knob("refresh")]
    real = [cell for cell in frozen if context.config.knobs(cell.setting.basis).control == "none"]
    return context.below(*(f"probe/drift/{cell.id}.json" for cell in real))


def needs(context: Context) -> list[str]:
    """The twins' replays, and the drift of frozen bases."""
    return [*context.below(*replay_files(context, KNOB)), *drifts(context)]


def vanilla_differences(table: Table, reference: str, other: str) -> list[stats.Paired | None]:
    """Return the differences of two vanilla arms in hack and solve rate, other - reference."""
    return [difference(table.line(other), table.line(reference), measure) for measure in ("hack", "solve")]


def are_matched(differences: list[stats.Paired | None]) -> bool:
    """Whether the rates of two vanilla arms are known and near enough."""
    return all(found is not None and abs(found.delta) <= MATCHED for found in differences)


def matched_sentences(table: Table, pairs: list[Twins]) -> list[str]:
    """Say whether the two vanilla arms have the same hack and solve rates."""
    said = []
    for reference, other in sorted({(pair.reference.baseline, pair.other.baseline) for pair in pairs}):
        found = vanilla_differences(table, reference, other)
        if None in found:
            said.append(f"Vanilla arms `{other}` and `{reference}` share no seed.")
            continue
        hack, solve = map(paired_text, found)
        said.append(
            f"Vanilla arms `{other}` against `{reference}`: hack {hack}, solve {solve}, "
            f"{'matched' if are_matched(found) else 'NOT matched'} (mark: {MATCHED:.2f} on either)."
        )
    return said


def effect_by_seed(table: Table, name: str) -> dict[int, float]:
    """Return seed -> hack rate of a row - that of its baseline."""
    line = table.line(name)
    ours, theirs = (row.values.get("hack", {}) for row in (line, table.line(line.row.baseline)))
    return {seed: ours[seed] - theirs[seed] for seed in sorted(set(ours) & set(theirs))}


def pair_sentence(table: Table, pair: Twins) -> str:
    """Compare the two effects of a twin row on the hack rate, over the seeds that both have."""
    svd, lora = effect_by_seed(table, pair.reference.name), effect_by_seed(table, pair.other.name)
    common = sorted(set(svd) & set(lora))
    if not common:
        return f"`{pair.other.name}`: runs are missing."
    svd, lora = ({seed: effect[seed] for seed in common} for effect in (svd, lora))
    ours, theirs = float(np.mean(list(lora.values()))), float(np.mean(list(svd.values())))
    text = f"`{pair.other.name}` {ours:+.3f} against `{pair.reference.name}` {theirs:+.3f}"
    if theirs >= 0 or not is_shown(table.line(pair.reference.name).to_baseline.get("hack")):
        return text + ": the SVD arm is itself not shown to lower it, so there is nothing to match."
    share = ours / theirs
    # Above zero: LoRA falls short of the share. Testing the combination keeps the seeds paired.
    shortfall = stats.paired(lora, {seed: SHARE * value for seed, value in svd.items()})
    text += f": {100 * share:.0f}% of the SVD effect"
    if shortfall.lo is not None:
        text += f" (LoRA minus {SHARE} SVD {paired_text(shortfall)}, p {p_value(shortfall.p)})"
    if are_matched(vanilla_differences(table, pair.reference.baseline, pair.other.baseline)):
        text += f"; {_reaches(share, shortfall)}"
    else:
        text += "; no verdict: vanilla arms not matched"
    solve = difference(table.line(pair.other.name), table.line(pair.reference.name), "solve")
    return text + f"; solve rate {paired_text(solve)} against the SVD arm."


def _reaches(share: float, shortfall: stats.Paired) -> str:
    """Say whether LoRA reaches the share, and whether the interval of the shortfall agrees."""
    mark = f"{100 * SHARE:.0f}% of it"
    if shortfall.lo is None:
        return f"{'at least' if share >= SHARE else 'less than'} {mark}, without an interval"
    if share >= SHARE:
        return f"at least {mark}, the interval {'agrees' if shortfall.hi <= 0 else 'includes less'}"
    return f"less than {mark}, " + (
        "a clean negative" if shortfall.lo > 0 else "though the interval includes it"
    )


def _part_mean(line: Line, column: str, part: slice) -> float | None:
    values = [run.steps[column][part] for run in line.runs]
    values = [value[~np.isnan(value)].mean() for value in values if not np.isnan(value).all()]
    return float(np.mean(values)) if values else None


def mean_by_step(line: Line, column: str) -> pd.Series:
    """Return step -> mean of the column over the runs that have a value there; empty without a run."""
    if not line.runs:
        return pd.Series(dtype=float)
    means = stats.mean_by_step([run.steps[column] for run in line.runs])
    return pd.Series(means, index=line.runs[0].steps["step"].astype(int)).dropna()


Drifts = Mapping[str, Sequence[Mapping]]  # cell id -> what `stages.contrast.drift` measured, look after look


def measured(context: Context) -> Drifts:
    """Read the drift files."""
    return {Path(path).stem: read_json(path)["looks"] for path in drifts(context)}


def drift_grid(table: Table, found: Drifts) -> Grid:
    """Return what the basis sees over the run, and what a fresh one shares with it."""

    def leak(line: Line) -> str:
        update, seen = (_part_mean(line, name, slice(-5, None)) for name in ("cout_update", "cin"))
        return f"{update / seen:.2f}" if update is not None and seen else NONE

    def fresh(line: Line, key: str) -> str:
        shares = [found[cell][-1][key] for cell in line.cells if cell in found]
        return rate(float(np.mean(shares)) if shares else None)

    def refreshed(line: Line, place: int, column: str = "basis_overlap") -> str:
        overlaps = mean_by_step(line, column)
        return rate(overlaps.iloc[place]) if len(overlaps) else NONE

    columns = {
        "row": lambda line: line.name,
        "cin first 5": lambda line: rate(_part_mean(line, "cin", slice(None, 5))),
        "cin last 5": lambda line: rate(_part_mean(line, "cin", slice(-5, None))),
        "null": lambda line: rate(line.summary["cin_null"].mean),
        "cout": lambda line: rate(line.summary["cout"].mean),
        "cout_update / cin": leak,
        "overlap with fresh": lambda line: fresh(line, "overlap_fresh"),
        "random": lambda line: fresh(line, "overlap_null"),
        "overlap per refresh, first": lambda line: refreshed(line, 0),
        "last": lambda line: refreshed(line, -1),
        "last with the first V": lambda line: refreshed(line, -1, "basis_overlap_first"),
    }
    return grid([line for line in table.lines if "cin" in line.summary], columns, title="Drift of the basis")


def fresh_by_step(line: Line, found: Drifts) -> pd.Series:
    """Return step -> overlap of the frozen V with a fresh one, mean over seeds; 1 before the first step of several."""
    looks = [look for cell in line.cells for look in found.get(cell, ())]
    if not looks:
        return pd.Series(dtype=float)
    means = pd.DataFrame(looks).groupby("step")["overlap_fresh"].mean()
    return pd.concat([pd.Series({0: 1.0}), means]) if len(means) > 1 else means  # one look makes no line


def drift_series(table: Table, found: Drifts) -> dict[str, dict[str, pd.Series]]:
    """Return title -> row -> values by step: cin and overlap of the frozen arms, overlaps of the refreshing ones."""
    lines = [line for line in table.lines if "cin" in line.summary]
    frozen = [line for line in lines if not line.row.setting.knob("refresh")]
    renewed = [line for line in lines if line.row.setting.knob("refresh")]
    before, first = (
        {line.name: mean_by_step(line, name) for line in renewed}
        for name in ("basis_overlap", "basis_overlap_first")
    )
    return {
        "cin along the frozen V": {line.name: mean_by_step(line, "cin") for line in frozen},
        "frozen V: overlap with a fresh one": {line.name: fresh_by_step(line, found) for line in frozen},
        "new V: overlap with the last one": before,
        "new V: overlap with the first one": first,
    }


def make(context: Context) -> Verdict:
    """Return R6's page."""
    table, pairs, sights = read(context, KNOB)
    found = measured(context)
    said = (*matched_sentences(table, pairs), *(pair_sentence(table, pair) for pair in pairs))
    notes = (Paragraph(text, kind="note") for text in DRIFT)
    blocks = (*t4_blocks(pairs, sights), *notes, drift_grid(table, found))
    drawn = {
        "t4": (t4_strip({name: sight.t for name, sight in sights.items()}), "T4 in SVD and in LoRA space."),
        "drift": (
            over_steps(drift_series(table, found)),
            "How the basis ages: hack-ward share of the gradient along a frozen V, and that V's overlap with one "
            "extracted anew (LoRA: at the end alone); in refreshing runs, the overlap of each new V with the one that "
            "it replaces, and with the first.",
        ),
    }
    files = tuple(f"probe/drift/{cell}.json" for cell in found)
    behind = (*sources(context, KNOB), Source("Drift", files=files))
    return of_table(context, table, (Listing(said),), blocks, behind, drawn, said)
