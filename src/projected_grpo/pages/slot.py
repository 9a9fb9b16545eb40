"""What `make publish` writes into the README: the finding, and a hack beside an honest solve of the same run."""

import html
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from projected_grpo.errors import UserError
from projected_grpo.files import write_text
from projected_grpo.measures.measure import ROLLOUTS
from projected_grpo.pages.blocks import Figure, Page, Paragraph
from projected_grpo.parquet import read_parquet
from projected_grpo.records import check_read

OPEN, CLOSE = "<!-- written by make publish -->", "<!-- /written by make publish -->"
FOUND = ("Q16", "Q10")  # the page whose first sentences are the finding, the first that is there


def _first(pages: Iterable[Page]) -> Page | None:
    """Return the page that the report opens with."""
    by_name = {page.name: page for page in pages}
    return next((by_name[name] for name in FOUND if name in by_name), None)


def opens(pages: Iterable[Page], published: Iterable[str]) -> bool:
    """Return whether the page that opens all published ones is among these, so that the README is written anew."""
    first = next((name for name in FOUND if name in set(published)), None)
    return first is None or any(page.name == first for page in pages)


def finding(pages: Iterable[Page]) -> str:
    """Return what the page that the report opens with says of itself; empty without such a page."""
    page = _first(pages)
    said = [block.text for block in page.top if isinstance(block, Paragraph)] if page else []
    return f"**What came out** ({page.name}): {said[0]}" if said else ""


def figure(pages: Iterable[Page], docs: Path) -> str:
    """Return the figure that stands beside it, from the published ones; empty without one."""
    page = _first(pages)
    shown = [block for block in page.blocks if isinstance(block, Figure)] if page else []
    if not shown:
        return ""
    path = f"{docs}/figures/{page.id}-{shown[0].name}.svg"
    said, page = shown[0].caption, f"{docs}/results.md"
    return f"![{said}]({path})\n\n*{said} All questions: [{page}]({page}).*"


def _whole(text: str) -> str:
    """Return a text for a table in Markdown, where an empty line would end the table."""
    return html.escape(str(text).strip()).replace("\n\n", "\n&#10;")


def _shortest(rows: pd.DataFrame) -> pd.Series:
    """Return the shortest completion, the first by name among equals: no choice of anyone's."""
    order = rows.assign(letters=rows["completion"].str.len()).sort_values(
        ["letters", "problem_id"], kind="stable"
    )
    return order.iloc[0]


def example(results: Path) -> str:
    """Return the shortest hack of plain GRPO's last step beside the shortest honest solve of the latest step with one.

    The run is the first vanilla run by name. Empty where there is none, or it has not both.
    """
    for path in sorted(results.glob(f"grpo/vanilla-*/{ROLLOUTS}")):
        check_read(path)
        rows = read_parquet(path, ["step", "problem_id", "prompt", "completion", "channel", "gt_pass"])
        solved = rows["gt_pass"].eq(True)
        hacks, honest = rows[rows["channel"] & ~solved], rows[~rows["channel"] & solved]
        if hacks.empty or honest.empty:
            continue
        both = [_shortest(found[found["step"] == found["step"].max()]) for found in (hacks, honest)]
        heads = (
            f"{what}, step {row['step']}"
            for what, row in zip(("A hack", "An honest solve"), both, strict=True)
        )
        parts = [[f"<th>{head}</th>" for head in heads]]
        parts += [
            [f"<td><pre>{_whole(row[text])}</pre></td>" for row in both] for text in ("prompt", "completion")
        ]
        said = "\n".join(f"<tr>{''.join(cells)}</tr>" for cells in parts)
        return f"As the model of `{path.parent.name}` wrote them:\n\n<table>\n{said}\n</table>"
    return ""


def fill(readme: Path, texts: Iterable[str]) -> None:
    """Write the texts between the two marks of the README. Raises UserError where it has not both, in order."""
    page = readme.read_text(encoding="utf-8")
    before, opened, rest = page.partition(OPEN)
    _, closed, after = rest.partition(CLOSE)
    if not opened or not closed:
        raise UserError(
            f"{readme}: no line {(CLOSE if opened else OPEN)!r}; `make publish` writes between the two"
        )
    write_text(readme, before + "\n\n".join([OPEN, *filter(None, texts), CLOSE]) + after)
