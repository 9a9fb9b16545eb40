"""Q18: how well the direction tells hacks, and whether that falls where runs are trained against it."""

from dataclasses import replace

from projected_grpo.measures.columns import DETECTOR_SCORES
from projected_grpo.measures.detector import detector_frame, falls, file, read_rankings, recall_lost
from projected_grpo.pages import detector
from projected_grpo.pages.blocks import Figure, Listing, Paragraph, Source
from projected_grpo.pages.detector_figure import detection, gamed
from projected_grpo.pages.standing import stands
from projected_grpo.verdicts.context import Context
from projected_grpo.verdicts.table import table_of
from projected_grpo.verdicts.verdict import Verdict, of_table

DETECTION = (
    "How often the hack of a pair has the larger score, in plain training, by five steps; mean over seeds. Grey: where "
    "95% of random directions lie. Thin lines: placebo pair sets. The oracle is fitted on other problems' rollouts."
)
GAMED = (
    "The same in runs whose penalty or advantage reads the concept score, beside their unpenalised baseline (thick), "
    "and precision and recall of the threshold of step 0 on all rollouts. Grey: penalised along random directions."
)


def needs(context: Context) -> list[str]:
    """The rankings of every run."""
    return context.below(*(file(cell.id) for cell in context.question.cells))


def make(context: Context) -> Verdict:
    """Return Q18's page."""
    table = table_of(context)
    asked = context.config.detector
    found = read_rankings(table, context.results, asked.pairs, asked.compare)
    by_score = {score: falls(table, found, score) for score in DETECTOR_SCORES}
    lost = recall_lost(table, found)
    said = detector.sentences(table, found, by_score, lost)
    drawn = {"detection": (detection(table, found), DETECTION), "gamed": (gamed(table, found), GAMED)}
    more = detector.blocks(table, found, by_score, lost)
    behind = (Source("Rankings", files=tuple(file(cell) for line in table.lines for cell in line.cells)),)
    made = of_table(context, table, (Listing(said),), more, behind, drawn, said)
    opening = stands(table, *detector.opening(table, found, by_score))
    if opening:
        shown = tuple(Figure(name, made.drawn[name][1]) for name in ("detection",) if name in made.drawn)
        made = replace(made, page=replace(made.page, finding=opening, top=(Paragraph(opening), *shown)))
    return replace(made, frame=detector_frame(table, found))
