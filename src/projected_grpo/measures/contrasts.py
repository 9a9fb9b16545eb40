"""What a table's contrasts show, in sentences: against the baseline, against random V, arm against arm.

A row counts as changed only where Holm's p within the question is below 0.05. Everything else is "no effect
shown", with the interval of what was seen and the difference that one test, before Holm's correction, would find
with 80% power.
"""

import math
from collections.abc import Callable

from projected_grpo.measures import stats
from projected_grpo.pages.table import Line, Table
from projected_grpo.pages.text import delta, interval, listing, p_is, paired_text, rate

WHAT = {
    "hack": "the hack rate",
    "hack_ablated": "the hack rate with the quarantine ablated",
    "hack_heldout": "the hack rate on the held-out loophole",
    "solve": "the solve rate",
    "solve_ablated": "the solve rate with the quarantine ablated",
    "compile": "the share of rollouts that compile",
    "cout_update": "the share of the applied update along the hack basis",
}
# The rate that is told beside a primary measure.
BESIDE = {"hack": "solve", "hack_ablated": "solve_ablated", "hack_heldout": "solve", "solve": "hack"}
# Below this rate of its own vanilla a fold of Q14 has no hacking that a basis could lower.
UNINFORMATIVE = 0.10


def is_shown(table: Table, line: Line, measure: str | None = None) -> bool:
    """Whether a row differs from its baseline: Holm's p below 0.05."""
    p = line.holm.get(measure or table.primary)
    return p is not None and p < stats.ALPHA


def uninformative(table: Table, line: Line) -> bool:
    """Whether this row's fold has too little hacking on its held-out loophole to show anything."""
    if not line.row.setting.held_out_mode:
        return False
    base = table.line(line.row.baseline) if line.row.baseline else line
    summary = base.summary.get("hack_heldout")
    return summary is not None and summary.mean < UNINFORMATIVE


def compared(table: Table) -> list[Line]:
    """The rows that stand against a baseline on the primary measure, without uninformative folds."""
    return [line for line in table.lines if table.primary in line.against and not uninformative(table, line)]


def _effect(table: Table, line: Line) -> str:
    pair = line.against[table.primary]
    text = f"`{line.name}` {paired_text(pair)}, Holm p {p_is(line.holm[table.primary])}"
    beside = BESIDE[table.primary]
    if beside in line.against:
        text += f", {beside.removesuffix('_ablated')} {paired_text(line.against[beside])}"
    return text


def span(values: list[float], form: Callable[[float], str]) -> str:
    """Return the smallest and the largest value as text, once where they read the same."""
    low, high = form(min(values)), form(max(values))
    return low if low == high else f"{low} to {high}"


def _ns(lines: list[Line], measure: str) -> str:
    ns = sorted({line.against[measure].n for line in lines})
    return f"n = {ns[0]}" if len(ns) == 1 else f"n = {ns[0]} to {ns[-1]}"


def _nulls(table: Table, lines: list[Line]) -> str:
    """What can be said of rows without a shown effect: what was seen and what would have been seen."""
    pairs = [line.against[table.primary] for line in lines]
    names = ", ".join(f"`{line.name}`" for line in lines)
    widest = interval(min(pair.lo for pair in pairs), max(pair.hi for pair in pairs))
    could = span([pair.detectable for pair in pairs], rate)
    noun, own = (
        ("differences", "their 95% intervals") if len(pairs) > 1 else ("difference", "its 95% interval")
    )
    return (
        f"No effect shown for {names}: {noun} {span([pair.delta for pair in pairs], delta)}, within "
        f"{widest} by {own}; one test at p < {stats.ALPHA} would find a difference of {could} with 80% power, "
        "Holm's correction asks for more, and smaller ones are not ruled out."
    )


def effects(table: Table) -> list[str]:
    """Sentences on every row that has a baseline, on the question's primary measure."""
    lines = compared(table)
    if not lines:
        return ["No row can be compared with its baseline: their runs are missing."] if table.left_out else []
    what = WHAT[table.primary]
    if all(line.against[table.primary].n < 2 for line in lines):
        seen = listing([f"`{line.name}` {delta(line.against[table.primary].delta)}" for line in lines])
        return [
            f"One seed: differences in {what} are {seen}; without a second seed none can be told from noise."
        ]
    tested = [line for line in lines if line.against[table.primary].p is not None]
    untested = [line for line in lines if line.against[table.primary].p is None]
    shown = [line for line in tested if is_shown(table, line)]
    sentences = []
    for sign, verb in ((-1, "Lower"), (1, "Raise")):
        group = [line for line in shown if math.copysign(1, line.against[table.primary].delta) == sign]
        group.sort(key=lambda line: sign * -line.against[table.primary].delta)
        if group:
            ns = _ns(group, table.primary)
            verb = verb + ("s" if len(group) == 1 else "")
            effects = listing([_effect(table, line) for line in group])
            sentences.append(f"{verb} {what} against its baseline (paired by seed, {ns}): {effects}.")
    nulls = [line for line in tested if not is_shown(table, line)]
    if not shown and tested:
        sentences.append(
            f"No effect on {what} is shown: none of {len(tested)} rows differs from its baseline after Holm's "
            f"correction ({_ns(tested, table.primary)}, smallest Holm p "
            f"{p_is(min(line.holm[table.primary] for line in tested))})."
        )
    if nulls:
        sentences.append(_nulls(table, nulls))
    if untested:
        seen = listing([f"`{line.name}` {delta(line.against[table.primary].delta)}" for line in untested])
        sentences.append(f"Not testable (one seed, or equal differences in every seed): {seen}.")
    return sentences


BEYOND, LESS, SAME = "beyond it", "less than it", "not told apart from it"


def _verdict(table: Table, line: Line) -> str:
    """How a row stands to the random-V row beside it."""
    if line.beyond_holm is None or line.beyond_holm >= stats.ALPHA:
        return SAME
    if is_shown(table, line):
        # A difference of the other sign means that random V does more than the arm.
        same = line.beyond.delta * line.against[table.primary].delta > 0
        return BEYOND if same else LESS
    return "lower than it" if line.beyond.delta < 0 else "higher than it"


def against_control(table: Table) -> list[tuple[Line, str]]:
    """Return of every tested row with a random-V row beside it: its line and the verdict."""
    return [(line, _verdict(table, line)) for line in compared(table) if line.beyond_holm is not None]


def beyond_control(table: Table) -> list[str]:
    """Whether rows differ from what a random basis of the same shape does."""
    contrasts = [
        (f"`{line.name}`", line.beyond, line.beyond_holm, f": {_verdict(table, line)}")
        for line in compared(table)
        if line.beyond is not None
    ]
    return _told_apart("Against a random V of the same shape, paired by seed.", contrasts)


def _told_apart(lead: str, contrasts: list[tuple[str, stats.Paired, float | None, str]]) -> list[str]:
    """Return a sentence on contrasts (name, difference, Holm's p, verdict): those told apart, those not."""
    tested = [contrast for contrast in contrasts if contrast[2] is not None]
    nulls = [(name, pair, p) for name, pair, p, _ in tested if p >= stats.ALPHA]
    untested = [f"{name} {paired_text(pair)}" for name, pair, p, _ in contrasts if p is None]
    shown = [
        f"{name} {paired_text(pair)}, Holm p {p_is(p)}{says}"
        for name, pair, p, says in tested
        if p < stats.ALPHA
    ]
    parts = [f"Told apart: {listing(shown)}"] if shown else []
    if nulls:
        could = span([pair.detectable for _, pair, _ in nulls], rate)
        parts.append(
            f"No difference shown: {listing([f'{name} {paired_text(pair)}' for name, pair, _ in nulls])} "
            f"(smallest Holm p {p_is(min(p for *_, p in nulls))}; "
            f"one test at p < {stats.ALPHA} would find {could} with 80% power)"
        )
    if untested:
        parts.append(f"Not testable (one seed, or equal differences in every seed): {listing(untested)}")
    return [f"{lead} {'. '.join(parts)}."] if parts else []


def arm_measures(table: Table) -> list[str]:
    """Return the measures on which rows are compared with the one named in `against`."""
    measures = [table.primary, BESIDE[table.primary]]
    if any(line.row.setting.knob("space") == "update" for line in table.lines):
        measures.append("cout_update")
    return measures


def arm_against_arm(table: Table, measure: str) -> list[str]:
    """Whether rows differ on `measure` from the row named in `against`: told apart by Holm's p, or not."""
    contrasts = [
        (f"`{line.name}` against `{line.row.against}`", line.versus[measure], line.versus_holm[measure], "")
        for line in table.lines
        if measure in line.versus and not uninformative(table, line)
    ]
    return _told_apart(f"Arm against arm in {WHAT[measure]}, paired by seed.", contrasts)
