"""What a table's differences show: to the baseline, to random V, arm against arm.

A row counts as changed only where Holm's p within the question is below 0.05. Everything else is "no effect
shown": equivalent within a margin that was fixed beforehand, or with the bound that the runs leave.
"""

from collections.abc import Callable, Container, Iterable

from projected_grpo.measures import stats
from projected_grpo.measures.measure import MEASURES
from projected_grpo.measures.table import Line, Table
from projected_grpo.pages.blocks import Listing, Paragraph
from projected_grpo.pages.text import listing, p_is, paired_text, rate

# Below this rate of its own vanilla a fold of Q14 has no hacking that a basis could lower.
UNINFORMATIVE = 0.10
# A basis is cut where random axes of its shape take less than this share of what those take that it is held against.
WHOLE = 0.995


def is_shown(pair: stats.Paired | None) -> bool:
    """Whether a difference is there: Holm's p below 0.05."""
    return pair is not None and pair.holm is not None and pair.holm < stats.ALPHA


def is_equivalent(pair: stats.Paired) -> bool:
    """Whether a difference lies within the margin: Holm's p of the two one-sided tests below 0.05."""
    return pair.same_holm is not None and pair.same_holm < stats.ALPHA


def named(line: Line) -> str:
    """Return a row's name, with whose exploits its pairs hold."""
    return f"`{line.name}`" + (f" ({line.row.exploits})" if line.row.exploits else "")


def uninformative(table: Table, line: Line) -> bool:
    """Whether this row's fold has too little hacking on its held-out loophole to show anything."""
    if not line.row.setting.held_out_mode:
        return False
    base = table.line(line.row.baseline) if line.row.baseline else line
    summary = base.summary.get("hack_heldout")
    return summary is not None and summary.mean < UNINFORMATIVE


def compared(table: Table) -> list[Line]:
    """Return the rows with a difference in the primary measure, without uninformative folds."""
    return [
        line for line in table.lines if table.primary in line.to_baseline and not uninformative(table, line)
    ]


def tested(table: Table) -> list[Line]:
    """Return those of them whose difference has a test."""
    return [line for line in compared(table) if line.to_baseline[table.primary].p is not None]


def span(values: list[float], form: Callable[[float], str]) -> str:
    """Return the smallest and the largest value as text, once where they read the same."""
    low, high = form(min(values)), form(max(values))
    return low if low == high else f"{low} to {high}"


def with_p(pair: stats.Paired) -> str:
    """Return a difference with Holm's p, where it has one."""
    return paired_text(pair) + (f", Holm p {p_is(pair.holm)}" if pair.holm is not None else "")


def with_bound(pair: stats.Paired, above: bool = False) -> str:
    """Return what a difference that is not shown may still be: within the margin, or beyond a one-sided bound.

    above: a rise is asked about, where the row is what another is held against; else a fall.
    """
    if is_equivalent(pair):
        return f"equivalent within {rate(stats.MARGIN)} (Holm p {p_is(pair.same_holm)})"
    sides = {"lower": -pair.least, "higher": pair.most}
    # The side that is asked about, unless the bound excludes it altogether.
    first, other = ("higher", "lower") if above else ("lower", "higher")
    side = first if sides[first] > 0 else other
    return f"at most {rate(sides[side])} {side} (one-sided 95%, unadjusted)"


def with_n(pairs: Iterable[stats.Paired | stats.Place]) -> str:
    """Return `n = 10`, or from the smallest to the largest, of the seeds that differences are paired over."""
    return f"n = {span([pair.n for pair in pairs], str)}"


def smallest_holm(pairs: Iterable[stats.Paired]) -> str:
    """Return `smallest Holm p = 0.012` of tests, or nothing where none has one."""
    found = [pair.holm for pair in pairs if pair.holm is not None]
    return f"smallest Holm p {p_is(min(found))}" if found else ""


def bounded(pairs: dict[str, stats.Paired], above: Container[str] = ()) -> Listing:
    """Return name -> a difference that is not shown, each with its bound; above: names whose rise is asked about."""
    return Listing(
        tuple(
            f"{name} {paired_text(pair)}; {with_bound(pair, name in above)}" for name, pair in pairs.items()
        )
    )


def _piloted(table: Table, measure: str, lines: list[Line], of: Callable[[Line], stats.Paired]) -> list:
    """Return (spread of its pilot, seeds of its difference) of each row that is of a pilot's kind."""
    spreads = [(table.pilot.get(line.row.setting.mix, {}).get(measure), line) for line in lines]
    return [
        (spread, of(line).n)
        for spread, line in spreads
        if spread is not None and line.is_as_piloted and of(line).n > 1
    ]


def found_at(table: Table, measure: str, lines: list[Line], of: Callable[[Line], stats.Paired]) -> str:
    """Return what one test finds with 80% power by the spread of a pilot; empty where no row is of its kind."""
    found = [stats.detectable(*each) for each in _piloted(table, measure, lines, of)]
    return span(found, rate) if found else ""


def power(table: Table, measure: str, lines: list[Line], of: Callable[[Line], stats.Paired]) -> list:
    """Return the sentence on what the planned design finds; nothing without a pilot of that measure and these rows."""
    known = _piloted(table, measure, lines, of)
    if not known:
        return []
    spreads, ns = (list(each) for each in zip(*known, strict=True))
    finds = f"finds {found_at(table, measure, lines, of)} with 80% power at n = {span(ns, str)}"
    text = f"By the pilot's spread of {span(spreads, rate)}, one test at p < {stats.ALPHA} {finds}; Holm's correction "
    text += "asks for more."
    if len(known) < len(lines):
        text += f" So for {len(known)} of these {len(lines)} rows; the others are of other mixes, loopholes or lengths."
    return [Paragraph(text)]


def effects(table: Table) -> list:
    """Return blocks on every row that has a baseline, on the question's primary measure."""
    lines = compared(table)
    if not lines:
        missing = "No row can be compared with its baseline: their runs are missing."
        return [Paragraph(missing)] if table.left_out else []

    def pair(line: Line) -> stats.Paired:
        return line.to_baseline[table.primary]

    def effect(line: Line) -> str:
        beside = [
            f"{MEASURES[name].head} {paired_text(line.to_baseline[name])}"
            for name in table.about.beside
            if name in line.to_baseline
        ]
        small = is_shown(pair(line)) and is_equivalent(pair(line))
        yet = [f"yet equivalent within {rate(stats.MARGIN)}"] if small else []
        return "; ".join([f"`{line.name}` {with_p(pair(line))}", *yet, *beside])

    words = table.about.words
    if all(pair(line).n < 2 for line in lines):
        text = f"One seed: without a second one no difference in {words} can be told from noise."
        return [Paragraph(text), Listing(tuple(effect(line) for line in lines))]
    known = [line for line in lines if pair(line).p is not None]
    shown = [line for line in known if is_shown(pair(line))]
    nulls = [line for line in known if not is_shown(pair(line))]
    blocks = []
    for sign, verb in ((-1, "Lower"), (1, "Raise")):
        group = sorted(
            (line for line in shown if sign * pair(line).delta > 0), key=lambda line: -sign * pair(line).delta
        )
        if group:
            verb += "s" if len(group) == 1 else ""
            ns = with_n(map(pair, group))
            blocks.append(Paragraph(f"{verb} {words} against its baseline (paired by seed, {ns}):"))
            blocks.append(Listing(tuple(effect(line) for line in group)))
    if known and not shown:
        blocks.append(
            Paragraph(
                f"No effect on {words} is shown: none of {len(known)} rows differs from its baseline after Holm's "
                f"correction ({with_n(map(pair, known))}, {smallest_holm(map(pair, known))})."
            )
        )
    if nulls:
        blocks.append(Paragraph(f"No effect shown ({with_n(map(pair, nulls))}):"))
        blocks.append(bounded({f"`{line.name}`": pair(line) for line in nulls}))
        blocks += power(table, table.primary, nulls, pair)
    return blocks + _untested(lines, pair)


def _row_name(line: Line) -> str:
    return f"`{line.name}`"


def _untested(lines: list[Line], of: Callable, name: Callable[[Line], str] = _row_name) -> list:
    found = [f"{name(line)} {paired_text(of(line))}" for line in lines if of(line).p is None]
    said = "Not testable (one seed, or equal differences in every seed)"
    return [Paragraph(f"{said}: {listing(found)}.")] if found else []


BEYOND, LESS, SAME = "beyond it", "less than it", "not told apart from it"


def verdict(table: Table, line: Line) -> str:
    """Say how a row stands to its random-V row."""
    beyond, own = line.to_random[table.primary], line.to_baseline[table.primary]
    if not is_shown(beyond):
        return SAME
    if is_shown(own):
        # A difference of the other sign means that random V does more than the arm.
        return BEYOND if beyond.delta * own.delta > 0 else LESS
    return "lower than it" if beyond.delta < 0 else "higher than it"


def against_random(table: Table) -> list[tuple[Line, str]]:
    """Return every tested row that has a random-V row, and the verdict."""
    lines = [line for line in compared(table) if table.primary in line.to_random]
    return [(line, verdict(table, line)) for line in lines if line.to_random[table.primary].holm is not None]


def _told_apart(
    table: Table,
    measure: str,
    lead: str,
    lines: list[Line],
    of: Callable[[Line], stats.Paired],
    name: Callable[[Line], str],
    says=None,
    above: Callable[[Line], bool] = lambda line: False,
) -> list:
    """Return blocks on differences: those shown, and those not, with their bounds and what a test finds.

    above: of which lines a rise is asked about.
    """
    known = [line for line in lines if of(line).holm is not None]
    shown = [line for line in known if is_shown(of(line))]
    nulls = [line for line in known if line not in shown]
    blocks = [Paragraph("", lead)] if lines else []
    if shown:
        items = tuple(f"{name(line)} {with_p(of(line))}{': ' + says(line) if says else ''}" for line in shown)
        blocks += [Paragraph(f"Told apart ({with_n(map(of, shown))}):"), Listing(items)]
    if nulls:
        blocks.append(
            Paragraph(f"No difference shown ({smallest_holm(map(of, nulls))}, {with_n(map(of, nulls))}):")
        )
        others = {name(line) for line in nulls if above(line)}
        blocks.append(bounded({name(line): of(line) for line in nulls}, others))
        blocks += power(table, measure, nulls, of)
    return blocks + _untested(lines, of, name)


def beyond_random(table: Table) -> list:
    """Say whether rows differ from what random axes do; only of rows that have a control of their own.

    A row without random axes of the same k, gate, refresh and other settings is neither beyond random nor not.
    """
    lead = "Against a random V of the same k, gate, refresh and other settings, paired by seed."
    found = _to_random(table, table.primary, lead, lambda line: verdict(table, line))
    if table.about.group == "deployed":  # what hacks as little may be broken: honest work tells the two apart
        for measure in (*table.about.beside, "compile"):
            found += _to_random(table, measure, f"Against the same random V, in {MEASURES[measure].words}.")
    return found + _cut(table)


def _to_random(table: Table, measure: str, lead: str, says: Callable[[Line], str] | None = None) -> list:
    return _told_apart(
        table,
        measure,
        lead,
        [line for line in compared(table) if measure in line.to_random],
        lambda line: line.to_random[measure],
        lambda line: f"`{line.name}` against `{line.random}`",
        says,
        above=lambda line: measure != table.primary,
    )


def _cut(table: Table) -> list:
    """Name the rows with fewer axes than the random ones, by what any gradient has along as many random axes."""

    def share(line: Line) -> float:
        own, random = (each.summary.get("cin_null") for each in (line, table.line(line.random)))
        return own.mean / random.mean if own and random and random.mean else 1.0

    lines = [line for line in table.lines if table.primary in line.to_random]
    names = tuple(f"`{line.name}` {share(line):.0%}" for line in lines if share(line) < WHOLE)
    if not names:
        return []
    lead = "Their bases are cut: the random axes that they are held against are more, and so remove more. Along as "
    lead += "many random axes as they have any gradient has, of its length along those:"
    return [Paragraph(lead), Listing(names)]


def arm_measures(table: Table) -> list[str]:
    """Return the measures on which rows are compared with the one named in `against`."""
    measures = [table.primary, *table.about.beside]
    if any(line.row.setting.knob("space") == "update" for line in table.lines):
        measures.append("cout_update")
    return measures


def arm_against_arm(table: Table, measure: str) -> list:
    """Say whether rows differ on `measure` from the row named in `against`."""
    return _told_apart(
        table,
        measure,
        f"Arm against arm in {MEASURES[measure].words}, paired by seed.",
        [line for line in table.lines if measure in line.to_against and not uninformative(table, line)],
        lambda line: line.to_against[measure],
        lambda line: f"`{line.name}` against `{line.row.against}`",
        above=lambda line: not line.row.claims,
    )


def spoken(table: Table) -> list:
    """Say of the measures that every answer looks at where rows differ from their baseline."""
    names = [name for name, measure in MEASURES.items() if measure.spoken and name != table.primary]
    return differences(compared(table), names)


def differences(lines: list[Line], names: Iterable[str]) -> list:
    """Say of some measures where rows differ from their baseline."""
    blocks, quiet = [], []
    for name in names:
        words = MEASURES[name].words
        known = [
            line for line in lines if name in line.to_baseline and line.to_baseline[name].holm is not None
        ]
        shown = [line for line in known if is_shown(line.to_baseline[name])]
        form = "`{}` {} ({})"
        items = (
            form.format(line.name, rate(line.summary[name].mean), with_p(line.to_baseline[name]))
            for line in shown
        )
        if shown:
            blocks.append(Paragraph(f"{words.capitalize()} differs from the baseline's:"))
            blocks.append(Listing(tuple(items)))
        elif known:
            quiet.append(f"{words} ({smallest_holm(line.to_baseline[name] for line in known)})")
    said = "Not shown to differ from the baseline's:"
    if len(quiet) > 1:
        return [*blocks, Paragraph(said), Listing(tuple(quiet))]
    return blocks + ([Paragraph(f"{said} {quiet[0]}.")] if quiet else [])
