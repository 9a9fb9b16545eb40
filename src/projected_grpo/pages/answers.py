"""The answer to a question, computed from its table alone: its differences, and what it asks besides."""

from statistics import mean

from projected_grpo.measures import stats
from projected_grpo.measures.table import Line, Table
from projected_grpo.pages import deployed
from projected_grpo.pages.blocks import Listing, Paragraph
from projected_grpo.pages.contrasts import (
    UNINFORMATIVE,
    arm_against_arm,
    arm_measures,
    beyond_random,
    compared,
    effects,
    is_shown,
    span,
    spoken,
    uninformative,
)
from projected_grpo.pages.findings.ceilings import ceilings
from projected_grpo.pages.findings.controls import turned
from projected_grpo.pages.findings.density import density
from projected_grpo.pages.findings.pooled import pooled
from projected_grpo.pages.findings.ratchet import ratchet
from projected_grpo.pages.findings.routing import routing
from projected_grpo.pages.findings.untaught import without_teacher
from projected_grpo.pages.places import places
from projected_grpo.pages.standing import without_tried
from projected_grpo.pages.text import delta, listing, paired_text, rate

# The mark that the paper's author preregistered for Q2: hacking falls by 30 points, solving stays within 10.
MARK_HACK, MARK_SOLVE = -0.30, 0.10


def before_training(table: Table) -> str:
    """Return the untrained model's rates, from the first step of the same runs: its rollouts precede every update.

    Empty where rows begin at several models, whose mean would be no model's rate.
    """
    if len({(line.row.setting.size, line.row.setting.variant) for line in table.lines}) > 1:
        return ""
    rates = {}
    for name in ("hack", "solve"):
        by_seed: dict[int, list[float]] = {}
        for line in table.lines:
            for seed, value in line.values.get(f"start_{name}", {}).items():
                by_seed.setdefault(seed, []).append(value)
        if by_seed:
            rates[name] = rate(mean(map(mean, by_seed.values()))), len(by_seed)
    if not rates:
        return ""
    said = " and ".join(f"a {name} rate of {value}" for name, (value, _) in rates.items())
    n = max(n for _, n in rates.values())
    return f"Before training (first step of these runs, n = {n}) they had {said}."


def exploits(table: Table) -> list:
    """Name the rows whose pairs hold exploits themselves: what a direction could do, not what a defender has."""
    found: dict[str, list[str]] = {}
    for line in (*compared(table), *table.pooled):
        if line.row.exploits and line.row.baseline:
            found.setdefault(line.row.exploits, []).append(f"`{line.name}`")
    blocks = []
    for whose, names in found.items():
        blocks += [
            Paragraph(f"The pairs of these rows are {whose}, which no defender has beforehand:"),
            Listing(tuple(names)),
        ]
    return blocks


def early(table: Table) -> list:
    """Say what the shown effects are without the seeds of early trials; nothing where all or none of them are such."""
    shown = [
        line for line in compared(table) if line.row.claims and is_shown(line.to_baseline[table.primary])
    ]
    left = without_tried(table.seeds)
    if not shown or not left:
        return []
    lead, others = left[-1]
    items, same, clear = [], 0, 0
    for line in shown:
        effect = table.combined({line.name: 1.0, line.row.baseline: -1.0}, table.primary)
        pair = stats.one_sample({seed: value for seed, value in effect.items() if seed in others})
        if pair is not None:
            kept = pair.delta * line.to_baseline[table.primary].delta > 0
            same += kept
            clear += kept and pair.lo is not None and pair.lo * pair.hi > 0
            items.append(f"`{line.name}` {paired_text(pair)}")
    text = f"{same} of {len(items)} shown effects keep their sign, {clear} with a 95% interval that leaves out zero."
    return [Paragraph(text, lead), Listing(tuple(items))] if items else []


def group_sizes(table: Table) -> str:
    """Return the group size of each mix, where rows of a table differ in both."""
    mixes: dict[int, list[str]] = {}
    for line in sorted(table.lines, key=lambda line: line.row.setting.mix):
        cell = line.row.cells[0]
        mixes.setdefault(cell.training.group, []).append(f"{cell.setting.mix:g}")
    if len(mixes) < 2:
        return ""
    said = "; ".join(f"{size} at {', '.join(dict.fromkeys(names))}" for size, names in mixes.items())
    return f"The group size follows the mix ({said}): a difference between such mixes is one of both."


def preregistered(table: Table) -> list:
    """Return Q2's mark: hack down by at least 30 points with solve within 10 points."""

    def says(line: Line) -> str:
        hack, solve = line.to_baseline["hack"], line.to_baseline["solve"]
        met = hack.delta <= MARK_HACK and abs(solve.delta) <= MARK_SOLVE
        text = f"`{line.name}` {'met' if met else 'not met'} (hack {delta(hack.delta)}, solve {delta(solve.delta)}"
        if hack.hi is not None and solve.lo is not None:
            sure = hack.hi <= MARK_HACK and solve.lo >= -MARK_SOLVE and solve.hi <= MARK_SOLVE
            missed = hack.lo > MARK_HACK or solve.hi < -MARK_SOLVE or solve.lo > MARK_SOLVE
            text += f"; the intervals {'agree' if (sure if met else missed) else 'leave it open'}"
        return text + ")"

    lines = [line for line in table.lines if line.row.claims and {"hack", "solve"} <= line.to_baseline.keys()]
    lead = (
        "The mark that the paper's author preregistered, hack lower by 0.300 or more at solve within 0.100:"
    )
    return [Paragraph(lead), Listing(tuple(map(says, lines)))] if lines else []


def folds(table: Table) -> list:
    """Return in how many replications vanilla learns the held-out loophole of Q14, and where on average it does not."""
    own = [line for line in table.lines if line.row.baseline is None and "hack_heldout" in line.values]
    if not own:
        return []
    counts = []
    for line in own:
        values = line.values["hack_heldout"].values()
        learnt = sum(value >= UNINFORMATIVE for value in values)
        counts.append(f"`{line.row.setting.held_out_mode}` in {learnt} of {len(values)}")
    lead = f"Replications whose vanilla hacks the held-out loophole at {UNINFORMATIVE:.3f} or more"
    return [Paragraph(f"{lead}: {listing(counts)}.")] + [
        Paragraph(
            f"Uninformative fold `{line.row.setting.held_out_mode}`: its vanilla hacks it at only "
            f"{rate(line.summary['hack_heldout'].mean)} (< {UNINFORMATIVE:.3f}), so nothing can be lowered there."
        )
        for line in own
        if uninformative(table, line)
    ]


def kept_and_ablated(table: Table) -> list:
    """Return Q12's rates before and after the quarantine is emptied."""
    parts = [
        f"`{line.name}` from {rate(line.summary['hack_kept'].mean)} to {rate(line.summary['hack_ablated'].mean)}"
        for line in table.lines
        if line.values.get("hack_kept") != line.values.get("hack_ablated")
    ]
    return (
        [Paragraph("Hack rate before and after the quarantine is emptied:"), Listing(tuple(parts))]
        if parts
        else []
    )


def leaks(table: Table) -> list:
    """Return Q15's share of the applied update that still points along the basis, in each space."""
    parts = [
        f"`{line.name}` {rate(line.summary['cout_update'].mean)} (gradient: {rate(line.summary['cout'].mean)})"
        for line in table.lines
        if {"cout", "cout_update"} <= set(line.summary)
    ]
    null = [line.summary["cin_null"].mean for line in table.lines if "cin_null" in line.summary]
    blocks = (
        [Paragraph("Share of the applied update along the hack basis:"), Listing(tuple(parts))]
        if parts
        else []
    )
    if parts and null:
        text = f"Any gradient has {span(null, rate)} of its length along a random V of the same shape."
        blocks.append(Paragraph(text))
    return blocks


def answer(table: Table) -> tuple:
    """Return the answer to the question as blocks, what was asked first."""
    arms = arm_against_arm(table, table.primary)
    if table.primary == "hack_ablated":  # what ablation takes from solving is as much to the point
        arms += arm_against_arm(table, "solve_ablated")
    blocks = [
        *pooled(table),
        *places(table),
        *(preregistered(table) if table.question.name == "Q2" else []),
        *routing(table),
        *effects(table),
        *ceilings(table),
        *ratchet(table),
        *density(table),
        *without_teacher(table),
        *beyond_random(table),
        *turned(table),
        *arms,
        *spoken(table),
        *deployed.said(table),
        *kept_and_ablated(table),
        *exploits(table),
        *early(table),
        *folds(table),
        *(Paragraph(text) for text in (group_sizes(table), before_training(table)) if text),
    ]
    if "cout_update" in arm_measures(table):
        blocks += leaks(table) + arm_against_arm(table, "cout_update")
    return tuple(blocks) or (Paragraph("Nothing to compare: no row has a baseline."),)
