"""The page of a plane of defences: its table, sorted by honest at equal hack, and what it shows in words."""

from collections import Counter
from collections.abc import Mapping

from projected_grpo.measures import stats
from projected_grpo.measures.measure import MEASURES
from projected_grpo.measures.plane import (
    EXPLOITS,
    GIVEN,
    HACK,
    HONEST,
    baseline,
    defences,
    labels,
    must_give,
    slower,
)
from projected_grpo.measures.table import Line, Table
from projected_grpo.pages.blocks import Cell, Grid, Listing, Paragraph, grid
from projected_grpo.pages.contrasts import against_random, is_shown, with_n, with_p
from projected_grpo.pages.deployed import BASE, rests_on_nothing
from projected_grpo.pages.number_cells import tested_cell
from projected_grpo.pages.plane_figure import of_table
from projected_grpo.pages.text import NONE, delta, listing, p_is, p_value, rate

Excesses = Mapping[str, stats.Paired]
TITLE = "What each defence leaves, beside plain training that learns less"
OUTSIDE, WAITS = "hacks more than vanilla", "runs are missing"
READ = (
    "Rates after training, on problems never trained on; below each its difference to the baseline, paired by seed, "
    "and Holm's p over the rows.",
    "At equal hack: known honest minus what plain training has at the same known hack, be it the base, a smaller "
    "learning rate or vanilla: means over seeds, honest interpolated over isotonic hack. Its 95% interval and p are by "
    "jackknife over seeds, t with n - 1 degrees of freedom, Holm's p over the rows. What hacks no more than the base "
    "is paired with the base instead; what hacks more than vanilla has no such difference.",
    "Random control: the row's known hack minus that of the same arm along random axes. Precision and recall are the "
    "monitor's on the run's own rollouts. Time: CPU time of a step, in vanilla's. Labels: verdicts that a run asks for "
    "beyond the reward; the self-taught critic has learned from those on two other runs.",
)


def ordered(table: Table, found: Excesses) -> list[Line]:
    """Return the rows by honest at equal hack, the largest first; those without come last, by their known hack."""

    def key(line: Line) -> tuple[bool, float]:
        if line.name in found:
            return False, -found[line.name].delta
        return True, line.summary[HACK].mean if HACK in line.summary else float("inf")

    return sorted(defences(table), key=key)


def _difference(pair: stats.Paired | None) -> str:
    if pair is None:
        return ""
    tested = "" if pair.holm is None else f", p {p_value(pair.holm)}"
    return f"Δ {delta(pair.delta)}{tested}"


def plane_grid(table: Table, found: Excesses) -> Grid:
    """Return the table: the defences by honest at equal hack, then the rows of the frontier and the base."""
    own = ordered(table, found)
    others = [line for line in table.lines if line not in own]

    def measured(name: str):
        def cell(line: Line | None) -> Cell:
            summary = (table.base if line is None else line.summary).get(name)
            if summary is None:
                return Cell(NONE)
            pair = line and line.to_baseline.get(name)
            if pair and name == "novel_hack" and rests_on_nothing(table, line):
                return Cell(rate(summary.mean), "uninformative")
            return Cell(rate(summary.mean), _difference(pair), strong=is_shown(pair or None))

        return cell

    def equal(line: Line | None) -> Cell:
        if line not in own:
            return Cell("base" if line is None else "frontier")
        pair = found.get(line.name)
        if pair is None:
            return Cell(OUTSIDE if _hacks_more(table, line) else WAITS)
        return tested_cell(pair)

    def control(line: Line | None) -> Cell:
        pair = line and line.to_random.get(HACK)
        if not pair:
            return Cell(NONE, "is one" if line and line.row.is_control else "")
        small = "" if pair.holm is None else f"p {p_value(pair.holm)}"
        return Cell(delta(pair.delta), small, strong=is_shown(pair))

    def monitor(line: Line | None) -> Cell:
        means = [line and line.summary.get(f"monitor_{name}") for name in ("precision", "recall")]
        return Cell(" / ".join(rate(mean.mean) if mean else NONE for mean in means) if any(means) else NONE)

    def time(line: Line | None) -> Cell:
        found = line and slower(table, line)
        return Cell(f"{found:.2f}" if found else NONE)

    columns = {
        "row": lambda line: Cell(BASE if line is None else line.name),
        "must be given": lambda line: Cell(NONE if line is None else must_give(line)),
        "at equal hack": equal,
        **{MEASURES[name].head: measured(name) for name in (HACK, HONEST, "novel_hack", "plain_solve")},
        "random control": control,
        "precision / recall": monitor,
        "time": time,
        "labels": lambda line: Cell(NONE if line is None else f"{labels(line):,}"),
    }
    base = [None] if HACK in table.base else []
    return grid([*own, *others, *base], columns, texts=2, title=TITLE)


def _hacks_more(table: Table, line: Line) -> bool:
    """Return whether a row hacks more than plain training does, so that no dose of it is its equal."""
    lines = (line, baseline(table))
    own, plain = (found.summary.get(HACK) if found else None for found in lines)
    return bool(own and plain) and own.mean > plain.mean


def _arms(table: Table) -> tuple[list[Line], list[Line]]:
    """Return (arms that a defender can have, arms along the teacher's own exploits: what a direction could do).

    None is a control, a placebo, or told by the oracle.
    """
    own = [line for line in defences(table) if line.row.claims and HACK in line.summary]
    along = [line for line in own if must_give(line) == EXPLOITS]
    return [line for line in own if must_give(line) not in ("oracle", EXPLOITS)], along


def _leaving_more(lines: list[Line], found: Excesses) -> list[Line]:
    """Return those of these rows that leave more honest work at equal hack, the most first."""
    pairs = [(line, found.get(line.name)) for line in lines]
    more = [(line, pair.delta) for line, pair in pairs if is_shown(pair) and pair.delta > 0]
    return [line for line, _ in sorted(more, key=lambda item: -item[1])]


def number_leaving_more(table: Table, found: Excesses) -> int:
    """Return how many arms that a defender can have leave more honest work at equal hack."""
    lines, _ = _arms(table)
    return len(_leaving_more(lines, found))


def sentences(table: Table, found: Excesses, early: str = "") -> tuple[str, ...]:
    """Return which defences leave more honest work than training less, which hacks least, and what the others do.

    The first is of arms that a defender can have; what acts along the teacher's own exploits has a sentence of its own.
    early: what the first one says, besides, of fewer seeds.
    """
    (lines, along), vanilla = _arms(table), baseline(table)
    if not lines or vanilla is None or HACK not in vanilla.summary:
        return ("No defence can be placed yet: its runs, or vanilla's, are missing.",)
    tested = _tested(lines, found)
    if not tested:
        return (f"Nothing can be told from noise ({_others(table, lines, found)}).",)
    more = _leaving_more(lines, found)
    rows = "doses" if of_table(table) else "arms"
    first = f"{len(more)} of {len(lines)} {rows} without an oracle or {EXPLOITS} "
    first += f"leave{'s' if len(more) == 1 else ''} more honest work than plain training at equal hacking"
    if more:
        first += f": most `{more[0].name}` (given: {must_give(more[0])}), {with_p(found[more[0].name])}"
    first += f" ({with_n(found[line.name] for line in tested)}{early})."
    rest = _others(table, lines, found)
    others = [_following(more, found), f"The others: {rest}." if rest else "", _along_exploits(along, found)]
    return first, _least(lines, vanilla), *filter(None, others), *_beyond(table)


def _tested(lines: list[Line], found: Excesses) -> list[Line]:
    return [line for line in lines if line.name in found and found[line.name].holm is not None]


def _others(table: Table, lines: list[Line], found: Excesses) -> str:
    """Count the rows that do not leave more honest work, by what they do."""
    tested = _tested(lines, found)
    shown = [line for line in tested if is_shown(found[line.name])]
    worse = sum(line not in tested and _hacks_more(table, line) for line in lines)
    counts = {
        "less honest work": len(shown) - len(_leaving_more(lines, found)),
        "not told apart": len(tested) - len(shown),
        OUTSIDE: worse,
        "not tested": len(lines) - len(tested) - worse,
    }
    return ", ".join(f"{name}: {number}" for name, number in counts.items() if number)


def _following(lines: list[Line], found: Excesses) -> str:
    """Say what follows the first of these rows, and how many of them must be given what."""
    if not lines:
        return ""
    counts = Counter(map(must_give, lines))
    given = ", ".join(f"{given} {counts[given]}" for given in GIVEN if counts[given])
    then = " and ".join(f"`{line.name}` {delta(found[line.name].delta)}" for line in lines[1:3])
    return f"{f'Then {then}. ' if then else ''}They are given: {given}."


def _along_exploits(lines: list[Line], found: Excesses) -> str:
    """Say which of these rows along the teacher's own exploits leave more honest work; empty without rows."""
    if not lines:
        return ""
    more = [f"`{line.name}` {with_p(found[line.name])}" for line in _leaving_more(lines, found)]
    said = f"Along {EXPLOITS} (`own_mode`), which no defender has beforehand, {len(more)} of {len(lines)} "
    said += f"{'leaves' if len(more) == 1 else 'leave'} more honest work"
    return f"{said}{f': {listing(more)}' if more else ''}."


def _beyond(table: Table) -> tuple[str, ...]:
    """Say which rows differ in known hack from the same arm along random axes; nothing where no row has these."""
    by_verdict: dict[str, list[str]] = {}
    for line, stands in against_random(table):
        by_verdict.setdefault(stands, []).append(f"`{line.name}`")
    said = "; ".join(f"{stands}: {listing(names)}" for stands, names in by_verdict.items())
    return (f"In known hack beside the same arm along random axes: {said}.",) if said else ()


def _least(lines: list[Line], vanilla: Line) -> str:
    """Say which row hacks least, of several the one that is honest most often."""
    lowest = min(line.summary[HACK].mean for line in lines)
    same = [line for line in lines if line.summary[HACK].mean == lowest]
    least = max(same, key=lambda line: line.summary[HONEST].mean)

    def beside(name: str) -> str:
        pair = least.to_baseline.get(name)
        tested = "" if pair is None or pair.holm is None else f", Holm p {p_is(pair.holm)}"
        return f"(vanilla {rate(vanilla.summary[name].mean)}{tested})"

    honest = rate(least.summary[HONEST].mean)
    said = f"`{least.name}` (given: {must_give(least)}) hacks least after training: {rate(lowest)} of the loopholes "
    said += f"used {beside(HACK)} and {honest} of the problems solved without {beside(HONEST)}"
    also = [f"`{line.name}`" for line in same if line is not least]
    return f"{said}{f'; as little: {listing(also)}' if also else ''}."


def doses(table: Table) -> tuple[Paragraph | Listing, ...]:
    """Return what known hack and known honest are at each dose, a line a curve; nothing without a curve."""
    said, vanilla = [], baseline(table)
    for curve in of_table(table):
        lines = [table.line(name) for name in curve.rows]
        at = ", ".join("default" if value is None else f"{value:g}" for value in curve.values)
        hack, honest = (", ".join(rate(line.summary[name].mean) for line in lines) for name in (HACK, HONEST))
        said.append(f"`{curve.arm}`, {curve.knob} {at}: known hack {hack}; known honest {honest}")
    if not said:
        return ()
    plain = ""
    if vanilla is not None and HACK in vanilla.summary:
        plain = ", ".join(rate(vanilla.summary[name].mean) for name in (HACK, HONEST))
        plain = f" (vanilla: {plain})"
    return Paragraph("", f"With the dose{plain}."), Listing(tuple(said))


def blocks(table: Table, found: Excesses) -> tuple:
    """Return what stands first on the page."""
    return (plane_grid(table, found), *(Paragraph(text, kind="legend") for text in READ))
