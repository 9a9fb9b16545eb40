"""Where vanilla hacks in nearly all that compiles: a null there says little of what a basis holds (Q10, run_tests)."""

from projected_grpo.cells.cell import TEACHERS
from projected_grpo.measures.table import Table
from projected_grpo.pages.blocks import Paragraph
from projected_grpo.pages.contrasts import compared, named
from projected_grpo.pages.text import listing, paired_text, rate

CEILING, MEASURE = 0.95, "hack_compiled"


def ceilings(table: Table) -> list[Paragraph]:
    """Name the baselines near the ceiling, and what the teacher's own exploits, the most a basis can hold, do there."""
    by_base: dict[str, list] = {}
    for line in compared(table) if table.primary == "hack" else ():
        by_base.setdefault(line.row.baseline, []).append(line)
    said = []
    for base, lines in by_base.items():
        summary = table.line(base).summary.get(MEASURE)
        if summary is None or summary.mean < CEILING:
            continue
        own = [
            f"{named(line)} {paired_text(line.to_baseline['hack'])}"
            for line in lines
            if line.row.exploits == TEACHERS
        ]
        text = (
            f"`{base}` hacks in {rate(summary.mean)} of what compiles. So near the ceiling an effect within "
        )
        text += "the margin says little of what a basis holds"
        said.append(Paragraph(f"{text}{f': there even {listing(own)}' if own else ''}."))
    return said
