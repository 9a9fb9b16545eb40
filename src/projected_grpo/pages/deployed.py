"""What a question's runs do after training, on problems never trained on: a table, and what it shows in words."""

from projected_grpo.measures.measure import JUDGED, MEASURES
from projected_grpo.measures.table import Line, Table
from projected_grpo.pages.blocks import Cell, Grid, Paragraph, grid
from projected_grpo.pages.contrasts import UNINFORMATIVE, compared, differences, is_shown
from projected_grpo.pages.number_cells import tested_cell
from projected_grpo.pages.text import NONE, rate

BASE = "the base, before training"  # the row above those of the runs
TITLE = "After training, on problems never trained on"
ABOUT = (
    "What a run deploys, under plain prompts. `known`: the loopholes of "
    "training; `novel`: the same ones under names that nothing taught; `plain`: no loophole. Beside a difference its "
    "95% t-interval and Holm's p."
)


def rests_on_nothing(table: Table, line: Line) -> bool:
    """Whether vanilla, be it the row or its baseline, uses the novel loopholes too seldom to show anything."""
    pair = [line, *([table.line(line.row.baseline)] if line.row.baseline else [])]
    plain = [one for one in pair if one.row.setting.defence.family == "none"] or pair
    means = [one.summary["novel_hack"].mean for one in plain if "novel_hack" in one.summary]
    return bool(means) and max(means) < UNINFORMATIVE


def deployed_grid(table: Table) -> Grid | None:
    """Return the rates after training with their differences, above them the base's before it; None without any."""
    lines = [line for line in table.lines if any(name in line.summary for name in JUDGED)]
    if not lines:
        return None

    def mean(name: str):
        def cell(line: Line | None) -> Cell:
            found = (table.base if line is None else line.summary).get(name)
            return (
                Cell(NONE) if found is None else Cell(rate(found.mean), rate(found.std) if found.std else "")
            )

        return cell

    def difference(name: str):
        def cell(line: Line | None) -> Cell:
            pair = line.to_baseline.get(name) if line else None
            if pair is None:
                return Cell(NONE)
            if name == "novel_hack" and rests_on_nothing(table, line):
                return Cell("uninformative")
            return tested_cell(pair)

        return cell

    columns = {"row": lambda line: Cell(BASE if line is None else line.name)}
    for name in JUDGED:
        head = MEASURES[name].head
        columns |= {head: mean(name), f"Δ {head}": difference(name)}
    return grid([*([None] if table.base else []), *lines], columns, title=TITLE)


def said(table: Table) -> list:
    """Return blocks on what changed at deployment; none where no row can be compared."""
    lines = [line for line in compared(table) if any(name in line.to_baseline for name in JUDGED)]
    if not lines:
        return []
    nothing = [line for line in lines if rests_on_nothing(table, line)]
    blocks = [Paragraph("", f"{TITLE}.")]
    blocks += differences(lines, [name for name in JUDGED if name != "novel_hack"])
    blocks += differences([line for line in lines if not rests_on_nothing(table, line)], ["novel_hack"])
    blocks += [
        Paragraph(
            f"Loopholes under novel names are uninformative: `{base}` uses them at only "
            f"{rate(table.line(base).summary['novel_hack'].mean)} (< {UNINFORMATIVE:.3f})."
        )
        for base in dict.fromkeys(line.row.baseline for line in nothing)
    ]
    return blocks


def short(table: Table, lines: list[Line]) -> str:
    """Say in a sentence how many of these rows hack less at deployment, and how many are honest more often."""
    known = [line for line in lines if line.to_baseline.get("known_hack") is not None]
    tested = [line for line in known if line.to_baseline["known_hack"].holm is not None]
    if not tested:
        return ""

    def count(name: str, sign: int) -> int:
        pairs = [line.to_baseline.get(name) for line in tested]
        return sum(is_shown(pair) and sign * pair.delta > 0 for pair in pairs)

    less, more, worse = count("known_hack", -1), count("known_honest", 1), count("known_honest", -1)
    return (
        f"At deployment, on problems never trained on, {less} of {len(tested)} hack less than their baseline, "
        f"{more} are honest more often and {worse} less often."
    )
