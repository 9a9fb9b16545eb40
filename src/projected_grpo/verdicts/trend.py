"""Effects against the size of the model (Q20) or the strength of a planted link (Q19)."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from projected_grpo.files import read_json
from projected_grpo.measures.trend import Overlaps, Series, trend_frame, trends, uses
from projected_grpo.pages import trend
from projected_grpo.pages.blocks import Figure, Listing, Paragraph, Source
from projected_grpo.pages.standing import stands
from projected_grpo.pages.trend_figure import trend as draw
from projected_grpo.verdicts.context import Context
from projected_grpo.verdicts.table import table_of
from projected_grpo.verdicts.verdict import Verdict, of_table

CAPTION = (
    "Left and middle: how the basis of each pair set lies to that of the exploits' own pairs; dotted: random axes. "
    "Right: what removing it does, against plain GRPO on the same base. Means over seeds with 95% t-intervals."
)


def overlap_files(context: Context) -> dict[str, str]:
    """Return model -> the file of its overlaps below the results folder."""
    question = context.question
    models = dict.fromkeys(cell.model for cell in question.cells)
    return {
        model: f"probe/overlaps/{question.name}/{model}.json"
        for model in models
        if uses(question, model, context.config)
    }


def needs(context: Context) -> list[str]:
    """The overlaps of the rows' bases on each model."""
    return context.below(*overlap_files(context).values())


def read_overlaps(context: Context) -> Overlaps:
    """Read the overlaps that are there."""
    paths = {model: Path(context.results) / path for model, path in overlap_files(context).items()}
    return {model: read_json(path)["bases"] for model, path in paths.items() if path.exists()}


def behind_series(found: Sequence[Series]) -> dict[str, tuple[str, ...]]:
    """Return name -> the rows of all series of that name, as those of two links."""
    rows: dict[str, tuple[str, ...]] = {}
    for series in found:
        rows[series.name] = (*rows.get(series.name, ()), *series.rows.values())
    return rows


def make(context: Context) -> Verdict:
    """Return the page of a trend."""
    table, config = table_of(context), context.config
    found, overlaps = trends(table, config), read_overlaps(context)
    said = trend.sentences(table, found, overlaps)
    blocks = trend.blocks(table, found, overlaps, config)
    behind = tuple(
        Source(name, tuple(dict.fromkeys(cell for row in rows for cell in table.line(row).cells)))
        for name, rows in behind_series(found).items()
    )
    behind += (Source("Overlaps", files=tuple(overlap_files(context).values())),)
    drawn = {"trend": (draw(table, found, overlaps, config), CAPTION)}
    made = of_table(context, table, (Listing(said),), (), behind, drawn, said)
    first = tuple(Figure(name, made.drawn[name][1]) for name in drawn if name in made.drawn)
    top = Paragraph(stands(table, *said[:2]))
    rest = tuple(block for block in made.page.blocks if block not in first)
    page = replace(
        made.page, blocks=(*first, *blocks, *rest), top=(top, *first), finding=stands(table, said[0])
    )
    return replace(made, page=page, frame=trend_frame(table, config, found, overlaps))
