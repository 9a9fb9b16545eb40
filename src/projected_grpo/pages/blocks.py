"""What a page is made of. Stages return blocks; `markdown` and `html` are their two renderers.

Every text is plain but for one notation: a name in backticks is code, and a link where the page has a source of
that name.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from projected_grpo.pages.text import short

T = TypeVar("T")


@dataclass(frozen=True)
class Heading:
    text: str


@dataclass(frozen=True)
class Paragraph:
    """`lead` is set in bold before the text; `kind`: `note`, `warn` or `legend`, else plain.

    A legend says how to read tables of this kind; the report, which has many of them, shows each legend once.
    """

    text: str
    lead: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Listing:
    items: tuple[str, ...]


@dataclass(frozen=True)
class Cell:
    """One cell of a grid: its text, what stands below it, and whether it is set off."""

    text: str
    small: str = ""
    strong: bool = False


@dataclass(frozen=True)
class Grid:
    """A table. Its first `texts` columns are text, the others numbers, which lead to the row's source.

    The source of a row is the page's of the same name as its first cell.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    texts: int = 1
    title: str = ""


@dataclass(frozen=True)
class Figure:
    """`name` is that of its SVG file in the page's folder of figures."""

    name: str
    caption: str


@dataclass(frozen=True)
class Details:
    """Blocks that a reader may open."""

    summary: str
    blocks: tuple


@dataclass(frozen=True)
class Pre:
    """Text as it is, such as what a model wrote."""

    text: str


@dataclass(frozen=True)
class Foreign:
    """Markdown from the documentation."""

    text: str


@dataclass(frozen=True)
class Source:
    """What stands behind the numbers of a row: runs, or files below the results folder."""

    name: str
    cells: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Page:
    """One page: `name` is its path below the results folder without suffix, `menu` its short name.

    `sources[0]` stands behind numbers whose row has no source of its own where `default` is set.
    `finding`: what came out in one sentence with its number; `banner`: what stands above all of it, where its numbers
    mean little.
    """

    name: str
    title: str
    menu: str
    asks: str
    blocks: tuple
    answer: tuple = ()
    sources: tuple[Source, ...] = ()
    default: bool = False
    left_out: tuple[tuple[str, str], ...] = ()
    finding: str = ""
    banner: str = ""

    @property
    def id(self) -> str:
        """Return the id of its section in the report."""
        return self.name.replace("/", "-")


def grid(
    rows: Iterable[T], columns: dict[str, Callable[[T], Cell | str]], texts: int = 1, title: str = ""
) -> Grid:
    """Return a grid of one line per row; columns: head -> cell of a row."""

    def cell(made: Cell | str) -> Cell:
        return made if isinstance(made, Cell) else Cell(str(made))

    made = tuple(tuple(cell(of(row)) for of in columns.values()) for row in rows)
    return Grid(tuple(columns), made, texts, title)


def left_out(found: Iterable[tuple[str, str]]) -> tuple:
    """Return a warning that names the cells that do not count, with the reason; nothing where all do."""
    by_reason: dict[str, list[str]] = {}
    for cell, why in found:
        by_reason.setdefault(why, []).append(cell)
    names = ", ".join(f"`{cell}` ({why})" for why, cells in by_reason.items() for cell in short(cells))
    return (Paragraph(f"{names}.", "Left out:", "warn"),) if names else ()
