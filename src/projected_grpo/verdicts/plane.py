"""A plane of defences (Q16) or of their doses (Q17): hacking against honest work after training."""

from dataclasses import replace

from projected_grpo.measures.plane import excesses, frontier, plane_frame
from projected_grpo.measures.table import Table
from projected_grpo.pages import plane
from projected_grpo.pages.blocks import Figure, Listing, Paragraph
from projected_grpo.pages.plane_figure import dose_curves
from projected_grpo.pages.plane_figure import plane as draw
from projected_grpo.pages.standing import stands, without_tried
from projected_grpo.pages.text import seed_list
from projected_grpo.verdicts.context import Context
from projected_grpo.verdicts.table import table_of
from projected_grpo.verdicts.verdict import Verdict, of_table

CAPTION = (
    "Each point is a defence: how often its runs use the known loopholes after training, and how often they solve the "
    "problem without. Lines through it: 95% t-intervals; thin dots: seeds. Line: plain training, less of it, from the "
    "base (cross) to vanilla. Stars are told by the oracle."
)
DOSES = "The doses of each defence on the same plane, a panel an arm; the number beside a point is the knob's value."


def make(context: Context) -> Verdict:
    """Return the page; its figure and its two sentences are what the report opens with."""
    table = table_of(context)
    front = frontier(table, context.results)
    found = excesses(table, front)
    rest, early = again(context, table)
    said = plane.sentences(table, found, early)
    drawn = {"plane": (draw(table, front), CAPTION), "doses": (dose_curves(table, front), DOSES)}
    made = of_table(context, table, (Listing(said), *plane.doses(table), *rest), drawn=drawn, log=said)
    names = [name for name in drawn if name in made.drawn]
    first = tuple(Figure(name, made.drawn[name][1]) for name in names)
    below = tuple(block for block in made.page.blocks if block not in first)
    page = replace(
        made.page,
        blocks=(*first, *plane.blocks(table, found), *below),
        finding=stands(table, f"{_after(table)}{said[0]}"),
        top=(Paragraph(stands(table, *said[:2])), *first[:1]),
    )
    return replace(made, page=page, frame=plane_frame(table, found))


def _after(table: Table) -> str:
    """Return how long the runs of a table are, where all are equally long: what tells planes apart."""
    steps = {run.cell.settings.training.steps for line in table.lines for run in line.runs}
    return f"After {steps.pop()} steps: " if len(steps) == 1 else ""


def again(context: Context, table: Table) -> tuple[tuple[Paragraph | Listing, ...], str]:
    """Return the sentences once more without the seeds of early trials, and in short how many arms they then count.

    Nothing where there are no other seeds.
    """
    blocks: list[Paragraph | Listing] = []
    early = ""
    for lead, others in without_tried(table.seeds):
        rows = (
            replace(row, cells=tuple(cell for cell in row.cells if cell.seed in others))
            for row in context.question.rows
        )
        left = table_of(context, replace(context.question, rows=tuple(rows)))
        found = excesses(left, frontier(left, context.results))
        blocks += [Paragraph("", lead), Listing(plane.sentences(left, found))]
        early = f"; on seeds {seed_list(others)}: {plane.number_leaving_more(left, found)}"
    return tuple(blocks), early
