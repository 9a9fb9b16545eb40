"""What the report's first screen says of a question, and its line in the table of all questions."""

from statistics import mean

from projected_grpo.measures.measure import MEASURES
from projected_grpo.measures.stats import MARGIN
from projected_grpo.measures.table import Line, Table
from projected_grpo.pages import deployed, findings
from projected_grpo.pages.answers import before_training
from projected_grpo.pages.blocks import Cell, Square
from projected_grpo.pages.contrasts import (
    BEYOND,
    against_random,
    found_at,
    is_equivalent,
    is_shown,
    named,
    span,
    tested,
    with_n,
    with_p,
)
from projected_grpo.pages.findings import untaught
from projected_grpo.pages.standing import standing
from projected_grpo.pages.text import NONE, delta, interval, p_is, paired_text, rate

OVERVIEW = (
    "question",
    "largest difference",
    "compared",
    "lower",
    "higher",
    "no effect shown",
    "Δ",
    "found at 80%",
)


def _strongest(table: Table, line: Line) -> list[str]:
    pair = line.to_baseline[table.primary]
    before, after = (
        mean(row.values[table.primary][seed] for seed in pair.seeds)
        for row in (table.line(line.row.baseline), line)
    )
    said = [
        f"The strongest, {named(line)}, goes from {rate(before)} to {rate(after)} "
        f"({paired_text(pair)}, Holm p {p_is(pair.holm)}, n = {pair.n})."
    ]
    beside = [
        f"{MEASURES[name].words} by {paired_text(line.to_baseline[name])}"
        for name in table.about.beside
        if name in line.to_baseline
    ]
    return said + ([f"It changes {' and '.join(beside)}."] if beside else [])


def _random(table: Table, arms: list[Line]) -> list[str]:
    """Say how many of the arms with random axes of their own do more than those, and what these do."""
    verdicts = [says for line, says in against_random(table) if line in arms]
    if not verdicts:
        return []
    controls = [line for line in tested(table) if line.row.is_control]
    pairs = [line.to_baseline[table.primary] for line in controls]
    does = paired_text(pairs[0]) if len(pairs) == 1 else span([pair.delta for pair in pairs], delta)
    alone = f" These alone change it by {does}." if pairs else ""
    return [f"Beyond random axes: {verdicts.count(BEYOND)} of {len(verdicts)}.{alone}"]


def between(table: Table) -> str:
    """Say in a sentence what arms do against each other; empty where no row names another, controls aside."""
    lines = [line for line in tested(table) if line.row.claims and table.primary in line.to_against]
    lines = [line for line in lines if line.to_against[table.primary].holm is not None]
    if not lines:
        return ""
    pairs = [line.to_against[table.primary] for line in lines]
    shown = sorted(
        (line for line in lines if is_shown(line.to_against[table.primary])),
        key=lambda line: -abs(line.to_against[table.primary].delta),
    )
    if not shown:
        gaps = span([pair.delta for pair in pairs], delta)
        return f"Of {len(lines)} differences between arms none is shown ({gaps}; {with_n(pairs)})."
    most = shown[0]
    said = f"Of {len(lines)} differences between arms {len(shown)} {'is' if len(shown) == 1 else 'are'} shown"
    return f"{said}, the largest `{most.name}` against `{most.row.against}`: {with_p(most.to_against[table.primary])}."


def short(table: Table) -> str:
    """Say how many arms lower the primary measure, what the strongest does, and the intervals of the others.

    Controls and placebos are what arms are held against, so they count as none.
    """

    def pair(line: Line):
        return line.to_baseline[table.primary]

    words = table.about.words
    arms = [line for line in tested(table) if line.row.claims]
    if not arms:
        return "Not tested yet: fewer than two complete seeds."
    lower = sorted(
        (line for line in arms if is_shown(pair(line)) and pair(line).delta < 0), key=lambda l: pair(l).delta
    )
    higher = [line for line in arms if is_shown(pair(line)) and pair(line).delta > 0]
    rest = [line for line in arms if not is_shown(pair(line))]
    said = list(filter(None, [*standing(table), findings.headline(table), untaught.said(table)]))
    if lower:
        said += [f"{len(lower)} of {len(arms)} arms lower{'s' if len(lower) == 1 else ''} {words}."]
        said += _strongest(table, lower[0]) + _random(table, lower)
    elif not higher:
        said.append(f"None of {len(arms)} arms is shown to lower {words}.")
    if higher:
        raises = f"raise{'s' if len(higher) == 1 else ''}"
        said.append(
            f"{len(higher)} {raises} it." if lower else f"{len(higher)} of {len(arms)} arms {raises} {words}."
        )
        said += [] if lower else _strongest(table, max(higher, key=lambda line: pair(line).delta))
    said.append(between(table))
    if rest:
        within = interval(min(pair(line).lo for line in rest), max(pair(line).hi for line in rest))
        same = sum(is_equivalent(pair(line)) for line in rest)
        equal = f"; {same} of them equivalent within {rate(MARGIN)}" if same else ""
        said.append(f"For {len(rest)} no effect is shown, their 95% intervals within {within}{equal}.")
    said.append(deployed.short(table, arms))
    # An ablated model is worth what it has over the untrained one.
    said.append(before_training(table) if table.primary == "hack_ablated" else "")
    return " ".join(filter(None, said))


def finding(table: Table) -> str:
    """Return what came out in one sentence: of the question's special test where it has one, else of the arms."""
    if special := findings.headline(table):
        return special
    arms = [line for line in tested(table) if line.row.claims]
    if first := untaught.said(table):  # two experiments: never a teacher, and one that leaves
        halves: dict[str, list[Line]] = {}
        for line in arms:
            halves.setdefault(line.row.baseline, []).append(line)
        said = [
            first,
            *(
                f"Against `{base}`: {_of_arms(table, own, most='. Most does')}"
                for base, own in halves.items()
            ),
        ]
    else:
        said = [_of_arms(table, arms)]
    return " ".join(filter(None, [*said, between(table)]))


def _of_arms(table: Table, arms: list[Line], most: str = ", most") -> str:
    """Return how many of these arms change the primary measure; most: what leads to the one that does most."""
    if not arms:
        return ""
    pairs = {line.name: line.to_baseline[table.primary] for line in arms}
    shown = {name: pair for name, pair in pairs.items() if is_shown(pair)}
    words = table.about.words
    if not shown:
        # The t-interval of a few seeds can go beyond what two rates can differ by.
        low, high = min(pair.lo for pair in pairs.values()), max(pair.hi for pair in pairs.values())
        estimates = span([pair.delta for pair in pairs.values()], delta)
        said = f"None of {len(arms)} arms is shown to change {words} ({with_n(pairs.values())}): differences "
        said += f"{estimates}, their 95% intervals within {interval(max(low, -1.0), min(high, 1.0))}."
        return said
    first = max(shown, key=lambda name: abs(shown[name].delta))
    held = [says for line, says in against_random(table) if line.name in shown]
    beyond = f", {held.count(BEYOND)} of {len(held)} beyond their random axes" if held else ""
    said = f"{len(shown)} of {len(arms)} arms change {words}{beyond}{most} {named(table.line(first))} by "
    return f"{said}{with_p(shown[first])} ({with_n(pairs.values())})."


def overview(table: Table) -> tuple[Cell, ...]:
    """Return a question's cells below `OVERVIEW`: counts by outcome and the largest difference."""
    lines = tested(table)
    pairs = [line.to_baseline[table.primary] for line in lines]
    shown = [pair for pair in pairs if is_shown(pair)]
    largest = max(lines, key=lambda line: abs(line.to_baseline[table.primary].delta), default=None)
    pair = largest.to_baseline[table.primary] if largest else None
    lower = sum(pair.delta < 0 for pair in shown)
    counts = (len(lines), lower, len(shown) - lower, len(lines) - len(shown))
    return (
        Cell(
            f"{table.question.title} `{table.question.name}`",
            "" if table.primary == "hack" else table.about.words,
        ),
        Cell(largest.name if largest else NONE),
        *(Cell(str(count)) for count in counts),
        Cell(delta(pair.delta), interval(pair.lo, pair.hi)) if pair else Cell(NONE),
        Cell(found_at(table, table.primary, lines, lambda line: line.to_baseline[table.primary]) or NONE),
    )


def squares(table: Table) -> tuple[Square, ...]:
    """Return a question's line in the map of all questions and arms: a square a row, in the table's order."""
    found = [(line, line.to_baseline.get(table.primary)) for line in table.lines]
    return tuple(
        Square(
            line.row.setting.arm,
            line.name,
            pair.delta,
            is_shown(pair),
            f"{MEASURES[table.primary].words} {with_p(pair)}, n = {pair.n}",
        )
        for line, pair in found
        if pair is not None
    )
