"""The report's first screen: three sentences and an overview, computed from the tables."""

from statistics import mean

from projected_grpo.measures import stats
from projected_grpo.measures.contrasts import (
    BESIDE,
    BEYOND,
    WHAT,
    against_control,
    compared,
    is_shown,
)
from projected_grpo.pages.answers import before_training
from projected_grpo.pages.table import Line, Table
from projected_grpo.pages.text import delta, interval, p_is, paired_text, rate

FIRST_SCREEN = ("Q2", "Q10", "Q12")


def _tested(table: Table) -> list[Line]:
    return [line for line in compared(table) if line.against[table.primary].p is not None]


def _seen(table: Table, line: Line) -> str:
    pair = line.against[table.primary]
    before, after = (
        mean(row.values[table.primary][seed] for seed in pair.seeds)
        for row in (table.line(line.row.baseline), line)
    )
    p = p_is(line.holm[table.primary])
    text = (
        f"`{line.name}`, goes from {rate(before)} to {rate(after)} "
        f"({paired_text(pair)}, Holm p {p}, n = {pair.n})"
    )
    beside = BESIDE[table.primary]
    if beside in line.against:
        text += f", and {WHAT[beside]} changes by {paired_text(line.against[beside])}"
    return text


def _control(table: Table, arms: list[Line]) -> str:
    """How many of the arms with a random V beside them do more than that, and what it does itself."""
    told = [says for line, says in against_control(table) if line in arms]
    if not told:
        return ""
    controls = [line for line in _tested(table) if line.row.is_control]
    does = " and ".join(f"`{line.name}` {paired_text(line.against[table.primary])}" for line in controls)
    return f"; beyond random axes ({does}): {told.count(BEYOND)} of {len(told)}"


def _reference(table: Table) -> Line | None:
    """Return the row that all `against` name, such as a placebo; None where there are several, or none."""
    names = {line.row.against for line in table.lines if line.row.against}
    return table.line(names.pop()) if len(names) == 1 else None


def _below(table: Table, arms: list[Line], reference: Line | None) -> str:
    """How many of the arms are lower than the row they are held against, and what it does itself."""
    told = [line for line in arms if line.versus_holm.get(table.primary) is not None]
    if reference is None or not told:
        return ""
    shown = [line for line in told if line.versus_holm[table.primary] < stats.ALPHA]
    below = sum(line.versus[table.primary].delta < 0 for line in shown)
    own = reference.against.get(table.primary)
    does = f" ({paired_text(own)})" if own else ""
    return f"; lower than `{reference.name}`{does}: {below} of {len(told)}"


def short(table: Table) -> str:
    """Return one sentence: how many arms lower the primary measure, the strongest one, the intervals of the others.

    Random axes and a placebo are what arms are held against, so they count as none.
    """
    reference = _reference(table)
    tested = [line for line in _tested(table) if not line.row.is_control and line is not reference]
    if not tested:
        return "Not tested yet: fewer than two complete seeds."
    lower = [line for line in tested if is_shown(table, line) and line.against[table.primary].delta < 0]
    lower.sort(key=lambda line: line.against[table.primary].delta)
    higher = [line for line in tested if is_shown(table, line) and line.against[table.primary].delta > 0]
    rest = [line for line in tested if not is_shown(table, line)]
    what = WHAT[table.primary]
    if lower:
        text = f"{len(lower)} of {len(tested)} arms lower{'s' if len(lower) == 1 else ''} {what}"
        text += f"; the strongest, {_seen(table, lower[0])}"
        text += _control(table, lower)
    else:
        text = f"None of {len(tested)} arms is shown to lower {what}"
    text += _below(table, tested, reference)
    if higher:
        text += f"; {len(higher)} raise{'s' if len(higher) == 1 else ''} it"
    if rest:
        pairs = [line.against[table.primary] for line in rest]
        within = interval(min(pair.lo for pair in pairs), max(pair.hi for pair in pairs))
        text += f"; for {len(rest)} no effect is shown, within {within}"
    # An ablated model is worth what it has over the untrained one.
    untrained = before_training(table) if table.primary == "hack_ablated" else []
    return " ".join([f"{text}.", *untrained])


def overview(table: Table) -> dict:
    """Return what the overview prints of one question: counts by outcome and the largest difference."""
    tested = _tested(table)
    shown = [line for line in tested if is_shown(table, line)]
    largest = max(tested, key=lambda line: abs(line.against[table.primary].delta), default=None)
    pair = largest.against[table.primary] if largest else None
    return {
        "name": table.question.name,
        "title": table.question.title,
        "measure": "" if table.primary == "hack" else WHAT[table.primary],
        "tested": len(tested),
        "lower": sum(line.against[table.primary].delta < 0 for line in shown),
        "higher": sum(line.against[table.primary].delta > 0 for line in shown),
        "none": len(tested) - len(shown),
        "largest": largest.name if largest else "",
        "delta": delta(pair.delta) if pair else "",
        "interval": interval(pair.lo, pair.hi) if pair else "",
        "detectable": _detectable(tested, table.primary),
        "left_out": len(table.left_out),
    }


def _detectable(lines: list[Line], measure: str) -> str:
    """Return the median over rows of the difference that the seeds show with 80% power."""
    found = sorted(line.against[measure].detectable for line in lines)
    return rate(found[len(found) // 2]) if found else ""


def totals(tables: list[Table]) -> dict:
    """Return how many runs, seeds and steps stand behind the page."""
    runs = {cell: run for table in tables for cell, run in table.runs.items()}
    seeds = sorted({run.cell.seed for run in runs.values()})
    return {
        "runs": len(runs),
        "seeds": len(seeds),
        "steps": sum(run.cell.steps for run in runs.values()),
        "left_out": len({cell for table in tables for cell in table.left_out}),
        "alpha": stats.ALPHA,
    }
