"""The answer below each table, computed from its numbers alone: its contrasts, and what the question asks besides."""

from statistics import mean

from projected_grpo.measures.contrasts import (
    BESIDE,
    UNINFORMATIVE,
    WHAT,
    arm_against_arm,
    arm_measures,
    beyond_control,
    compared,
    effects,
    is_shown,
    span,
    uninformative,
)
from projected_grpo.pages.table import Table
from projected_grpo.pages.text import delta, listing, p_is, paired_text, rate

# The mark that was preregistered for Q2: hacking falls by 30 points, solving stays within 10.
MARK_HACK, MARK_SOLVE = -0.30, 0.10


def before_training(table: Table) -> list[str]:
    """The untrained model's rates, from the first step of the same runs: its rollouts precede every update."""
    rates = {}
    for name in ("start_hack", "start_solve"):
        by_seed: dict[int, list[float]] = {}
        for line in table.lines:
            for seed, value in line.values.get(name, {}).items():
                by_seed.setdefault(seed, []).append(value)
        if by_seed:
            rates[name.removeprefix("start_")] = rate(mean(map(mean, by_seed.values()))), len(by_seed)
    if not rates:
        return []
    told = " and ".join(f"a {name} rate of {value}" for name, (value, _) in rates.items())
    return [
        f"Before training (first step of these runs, n = {max(n for _, n in rates.values())}) they had {told}."
    ]


def broken_code(table: Table) -> list[str]:
    """Rows whose share of code that compiles differs: hacking less because the code is broken is no success."""
    parts = [
        f"`{line.name}` {rate(line.summary['compile'].mean)} ({paired_text(line.against['compile'])}, "
        f"Holm p {p_is(line.holm['compile'])})"
        for line in compared(table)
        if is_shown(table, line, "compile")
    ]
    return [f"{WHAT['compile'].capitalize()} differs from the baseline's: {listing(parts)}."] if parts else []


def group_sizes(table: Table) -> list[str]:
    """The group size of each mix, where rows of a table differ in both."""
    mixes: dict[int, list[str]] = {}
    for line in sorted(table.lines, key=lambda line: line.row.setting.mix):
        cell = line.row.cells[0]
        mixes.setdefault(cell.training.group, []).append(f"{cell.setting.mix:g}")
    if len(mixes) < 2:
        return []
    told = "; ".join(f"{size} at {', '.join(dict.fromkeys(names))}" for size, names in mixes.items())
    return [f"The group size follows the mix ({told}): a difference between such mixes is one of both."]


def preregistered(table: Table) -> list[str]:
    """Q2's mark: hack down by at least 30 points with solve within 10 points."""
    sentences = []
    for line in table.lines:
        hack, solve = line.against.get("hack"), line.against.get("solve")
        if hack is None or solve is None or line.row.is_control:
            continue
        met = hack.delta <= MARK_HACK and abs(solve.delta) <= MARK_SOLVE
        text = f"`{line.name}` {'met' if met else 'not met'}"
        text += f" (hack {delta(hack.delta)}, solve {delta(solve.delta)}"
        if hack.hi is not None and solve.lo is not None:
            sure = hack.hi <= MARK_HACK and solve.lo >= -MARK_SOLVE and solve.hi <= MARK_SOLVE
            missed = hack.lo > MARK_HACK or solve.hi < -MARK_SOLVE or solve.lo > MARK_SOLVE
            verdict = "the intervals agree" if (sure if met else missed) else "the intervals leave it open"
            text += f"; {verdict}"
        sentences.append(text + ")")
    if not sentences:
        return []
    return [f"Preregistered mark, hack lower by 0.300 or more at solve within 0.100: {listing(sentences)}."]


def folds(table: Table) -> list[str]:
    """Q14's folds: in how many replications vanilla learns the held-out loophole, and where on average it does not."""
    own = [line for line in table.lines if line.row.baseline is None and "hack_heldout" in line.values]
    if not own:
        return []
    counts = [
        f"`{line.row.setting.held_out_mode}` in {sum(value >= UNINFORMATIVE for value in by_seed.values())} "
        f"of {len(by_seed)}"
        for line in own
        for by_seed in [line.values["hack_heldout"]]
    ]
    sentence = f"Replications whose vanilla hacks the held-out loophole at {UNINFORMATIVE:.3f} or more"
    flat = [line for line in own if uninformative(table, line)]
    return [f"{sentence}: {listing(counts)}."] + [
        f"Uninformative fold `{line.row.setting.held_out_mode}`: its vanilla hacks it at only "
        f"{rate(line.summary['hack_heldout'].mean)} (< {UNINFORMATIVE:.3f}), so nothing can be lowered there."
        for line in flat
    ]


def kept_and_ablated(table: Table) -> list[str]:
    """Q12's rates before and after the quarantine is emptied."""
    parts = [
        f"`{line.name}` {rate(line.summary['hack_kept'].mean)} to {rate(line.summary['hack_ablated'].mean)}"
        for line in table.lines
        if line.row.setting.arm == "route" and {"hack_kept", "hack_ablated"} <= set(line.summary)
    ]
    return [f"Emptying the quarantine takes the hack rate of {listing(parts)}."] if parts else []


def leaks(table: Table) -> list[str]:
    """Q15's share of the applied update that still points along the basis, in each space."""
    parts = [
        f"`{line.name}` {rate(line.summary['cout_update'].mean)} "
        f"(gradient: {rate(line.summary['cout'].mean)})"
        for line in table.lines
        if {"cout", "cout_update"} <= set(line.summary)
    ]
    null = [line.summary["cin_null"].mean for line in table.lines if "cin_null" in line.summary]
    if not parts:
        return []
    text = f"Share of the applied update along the hack basis: {listing(parts)}"
    if null:
        text += f"; any gradient has {span(null, rate)} of its length along a random V of the same shape"
    return [f"{text}."]


def left_out(table: Table) -> list[str]:
    """The runs that do not count, with the reason."""
    if not table.left_out:
        return []
    names = ", ".join(f"`{cell}` ({why})" for cell, why in table.left_out.items())
    return [f"Left out: {names}."]


def paragraphs(table: Table) -> list[str]:
    """Return the answer to the question by paragraph, what was asked first."""
    arms = arm_against_arm(table, table.primary)
    if table.primary == "hack_ablated":  # what ablating costs is half of what it is worth
        arms += arm_against_arm(table, BESIDE[table.primary])
    parts = [
        preregistered(table) if table.question.name == "Q2" else [],
        effects(table),
        beyond_control(table),
        arms,
        broken_code(table)
        + kept_and_ablated(table)
        + folds(table)
        + group_sizes(table)
        + before_training(table),
    ]
    if "cout_update" in arm_measures(table):
        parts.append(leaks(table) + arm_against_arm(table, "cout_update"))
    told = [" ".join(sentences) for sentences in parts if sentences]
    return told or ["Nothing to compare: no row has a baseline."]


def answer(table: Table) -> str:
    """Return the answer as text, a blank line between its paragraphs."""
    return "\n\n".join(paragraphs(table))
