"""What a verdict returns, and its files. Each page has one file in this folder, with `make(context) -> Verdict`,
and `needs(context)`, the files that it reads beside the runs of its question, where there are any.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from projected_grpo.files import atomic_folder, write_text
from projected_grpo.measures.columns import to_frame, write_frame
from projected_grpo.measures.table import Table
from projected_grpo.pages import style
from projected_grpo.pages.blocks import Page, Source, write_page
from projected_grpo.pages.figures import of_question
from projected_grpo.pages.markdown import to_markdown
from projected_grpo.pages.question import to_page
from projected_grpo.verdicts.context import Context

Drawn = dict[str, tuple[Figure, str]]  # name -> (figure, caption)


@dataclass(frozen=True)
class Verdict:
    """A page, its numbers as a frame, its figures, and what the log says."""

    page: Page
    frame: pd.DataFrame
    drawn: Drawn = field(default_factory=dict)
    log: tuple[str, ...] = ()


def of_table(
    context: Context,
    table: Table,
    verdict: tuple = (),
    blocks: tuple = (),
    behind: tuple[Source, ...] = (),
    drawn: dict[str, tuple[Figure | None, str]] | None = None,
    log: tuple[str, ...] = (),
) -> Verdict:
    """Return the page of a question, with what a special one adds to it (see `question.to_page`)."""
    more = {name: pair for name, pair in (drawn or {}).items() if pair[0] is not None}
    figures = of_question(table, context.config) | more
    page = to_page(table, figures, verdict, blocks, behind)
    left_out = tuple(f"left out: {cell} ({why})" for cell, why in table.left_out.items())
    return Verdict(page, to_frame(table), figures, (*left_out, *log))


def write(verdict: Verdict, results: Path, banner: str = "") -> None:
    """Write a page, under a banner, as Markdown and as JSON blocks, its frame and its figures."""
    page = replace(verdict.page, banner=banner)
    with atomic_folder(results / "figures" / page.name) as folder:
        for name, (drawing, _) in verdict.drawn.items():
            write_text(folder / f"{name}.svg", style.to_svg(drawing))
    write_frame(verdict.frame, results / f"{page.name}.parquet")
    write_page(page, results / f"{page.name}.json")
    write_text(results / f"{page.name}.md", to_markdown(page))
