"""Control subspaces beside the one row that they control (Q7)."""

from projected_grpo.measures.table import Table
from projected_grpo.pages.blocks import Paragraph
from projected_grpo.pages.contrasts import is_shown, with_n, with_p
from projected_grpo.pages.text import listing


def said(table: Table) -> str:
    """Say what controls do that are held against the one row that claims something; empty where there are none."""
    measure = table.primary
    arms = [line for line in table.lines if line.row.claims and measure in line.to_baseline]
    others = [
        line
        for line in table.lines
        if not line.row.claims and measure in line.to_against and measure in line.to_baseline
    ]
    if len(arms) != 1 or len(others) < 2 or any(line.row.against != arms[0].name for line in others):
        return ""
    effect = arms[0].to_baseline[measure]
    alone = [f"`{line.name}`" for line in others if is_shown(line.to_baseline[measure])]
    apart = [f"`{line.name}`" for line in others if is_shown(line.to_against[measure])]
    said = f"`{arms[0].name}` changes {table.about.words} by {with_p(effect)} ({with_n([effect])})."
    does, differ = (f"{len(names)} ({listing(names)})" if names else "none" for names in (alone, apart))
    return f"{said} Shown to change it, too: {does} of {len(others)} controls; to differ from it: {differ}."


def turned(table: Table) -> list[Paragraph]:
    """Say what shuffled labels are a control of: of which side of the axes is the hack-ward one, not of the axes."""
    names = [f"`{line.name}`" for line in table.lines if line.row.control == "shuffled"]
    if not names:
        return []
    text = f"{listing(names)}: labels exchanged in half of the pairs keep the axes of the contrast and turn some of "
    text += "them. So what it does it does along the same axes; what it lacks is their orientation."
    return [Paragraph(text)]
