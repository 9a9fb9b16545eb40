"""What the report's first screen says of a question, and its line in the table of all questions."""

from statistics import mean, median_high

from projected_grpo.measures.measure import MEASURES
from projected_grpo.measures.table import Line, Table
from projected_grpo.pages import deployed
from projected_grpo.pages.answers import before_training
from projected_grpo.pages.blocks import Cell
from projected_grpo.pages.contrasts import BEYOND, against_random, is_shown, tested
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
        f"The strongest, `{line.name}`, goes from {rate(before)} to {rate(after)} "
        f"({paired_text(pair)}, Holm p {p_is(pair.holm)}, n = {pair.n})."
    ]
    beside = [
        f"{MEASURES[name].words} by {paired_text(line.to_baseline[name])}"
        for name in table.about.beside
        if name in line.to_baseline
    ]
    return said + ([f"It changes {' and '.join(beside)}."] if beside else [])


def _random(table: Table, arms: list[Line]) -> list[str]:
    """Say how many of the arms with a random V beside them do more than that, and what it does itself."""
    verdicts = [says for line, says in against_random(table) if line in arms]
    if not verdicts:
        return []
    controls = [line for line in tested(table) if line.row.is_control]
    does = " and ".join(f"`{line.name}` {paired_text(line.to_baseline[table.primary])}" for line in controls)
    return [f"Beyond random axes ({does}): {verdicts.count(BEYOND)} of {len(verdicts)}."]


def _reference(table: Table) -> Line | None:
    """Return the row that all `against` name, such as a placebo; None where there are several, or none."""
    names = {line.row.against for line in table.lines if line.row.against}
    return table.line(names.pop()) if len(names) == 1 else None


def _below(table: Table, arms: list[Line], reference: Line | None) -> list[str]:
    """Say how many of the arms are lower than the row they are held against, and what it does itself."""
    pairs = [line.to_against[table.primary] for line in arms if table.primary in line.to_against]
    pairs = [pair for pair in pairs if pair.holm is not None]
    if reference is None or not pairs:
        return []
    below = sum(pair.delta < 0 and is_shown(pair) for pair in pairs)
    own = reference.to_baseline.get(table.primary)
    does = f" ({paired_text(own)})" if own else ""
    return [f"Lower than `{reference.name}`{does}: {below} of {len(pairs)}."]


def short(table: Table) -> str:
    """Say how many arms lower the primary measure, what the strongest does, and the intervals of the others.

    Random axes and a placebo are what arms are held against, so they count as none.
    """

    def pair(line: Line):
        return line.to_baseline[table.primary]

    reference, words = _reference(table), table.about.words
    arms = [line for line in tested(table) if not line.row.is_control and line is not reference]
    if not arms:
        return "Not tested yet: fewer than two complete seeds."
    lower = sorted(
        (line for line in arms if is_shown(pair(line)) and pair(line).delta < 0), key=lambda l: pair(l).delta
    )
    higher = [line for line in arms if is_shown(pair(line)) and pair(line).delta > 0]
    rest = [line for line in arms if not is_shown(pair(line))]
    if lower:
        said = [f"{len(lower)} of {len(arms)} arms lower{'s' if len(lower) == 1 else ''} {words}."]
        said += _strongest(table, lower[0]) + _random(table, lower)
    else:
        said = [f"None of {len(arms)} arms is shown to lower {words}."]
    said += _below(table, arms, reference)
    if higher:
        said.append(f"{len(higher)} raise{'s' if len(higher) == 1 else ''} it.")
    if rest:
        within = interval(min(pair(line).lo for line in rest), max(pair(line).hi for line in rest))
        said.append(f"For {len(rest)} no effect is shown, within {within}.")
    said.append(deployed.short(table, arms))
    # An ablated model is worth what it has over the untrained one.
    said.append(before_training(table) if table.primary == "hack_ablated" else "")
    return " ".join(filter(None, said))


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
            f"`{table.question.name}` {table.question.title}",
            "" if table.primary == "hack" else table.about.words,
        ),
        Cell(largest.name if largest else NONE),
        *(Cell(str(count)) for count in counts),
        Cell(delta(pair.delta), interval(pair.lo, pair.hi)) if pair else Cell(NONE),
        Cell(rate(median_high(pair.detectable for pair in pairs)) if pairs else NONE),
    )
