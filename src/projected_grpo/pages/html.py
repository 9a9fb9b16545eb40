"""Blocks as HTML for the report: everything is escaped, names and numbers lead to what was run."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from projected_grpo.pages.blocks import (
    Cell,
    Details,
    Figure,
    Foreign,
    Grid,
    Heading,
    Listing,
    Page,
    Paragraph,
    Pre,
)
from projected_grpo.pages.svg import inline
from projected_grpo.pages.text import NONE

_FOREIGN = MarkdownIt("commonmark", {"html": False}).enable("table").disable(["link", "image", "autolink"])


@dataclass(frozen=True)
class Renderer:
    """Renders the blocks of one page.

    ids: name of a source -> id of the element that shows it; default: that of rows without one.
    """

    page: str
    figures: Path
    ids: Mapping[str, str] = field(default_factory=dict)
    default: str | None = None

    def inline(self, text: str) -> Markup:
        """Return a text; names in backticks are code, and links to the source of that name."""
        parts = []
        for number, part in enumerate(text.split("`")):
            code = Markup("<code>{}</code>").format(part)
            if number % 2 and part in self.ids:
                parts.append(Markup('<a class="n" href="#{}">{}</a>').format(self.ids[part], code))
            else:
                parts.append(code if number % 2 else escape(part))
        return Markup("").join(parts)

    def render(self, blocks: tuple, level: int = 3) -> Markup:
        """Return blocks one after another; level: of their headings."""
        return Markup("\n").join(self._block(block, level) for block in blocks)

    def _block(self, block: object, level: int) -> Markup:
        match block:
            case Heading(text):
                return Markup("<h{0}>{1}</h{0}>").format(level, self.inline(text))
            case Paragraph(text, lead, kind):
                side = Markup(' class="{}"').format(kind) if kind else ""
                strong = Markup("<strong>{}</strong> ").format(lead) if lead else ""
                return Markup("<p{}>{}{}</p>").format(side, strong, self.inline(text))
            case Listing(items):
                points = (Markup("<li>{}</li>").format(self.inline(item)) for item in items)
                return Markup("<ul>{}</ul>").format(Markup("").join(points))
            case Grid():
                return self._grid(block)
            case Figure(name, caption):
                return self.figure(name, caption)
            case Details(summary, inner):
                shown = self.render(inner, level)
                return Markup("<details><summary>{}</summary>{}</details>").format(
                    self.inline(summary), shown
                )
            case Pre(text):
                return Markup('<pre tabindex="0">{}</pre>').format(text)
            case Foreign(text):
                return Markup('<div class="foreign">{}</div>').format(Markup(_FOREIGN.render(text)))
        raise TypeError(f"{block!r} is no block")

    def figure(self, name: str, caption: str) -> Markup:
        """Return an SVG file of the page with its caption."""
        svg = (self.figures / f"{name}.svg").read_text(encoding="utf-8")
        label = _spoken(caption)
        drawn = Markup(inline(svg, f"{self.page}-{name}", label))
        return Markup(
            '<figure class="fig"><div class="scroll" tabindex="0" role="region" aria-label="{}">'
            '<div class="draw">{}</div></div><figcaption>{}</figcaption></figure>'
        ).format(label, drawn, self.inline(caption))

    def _grid(self, grid: Grid) -> Markup:
        side = [Markup("") if i < grid.texts else Markup(' class="num"') for i in range(len(grid.head))]
        head = Markup("").join(
            Markup('<th scope="col"{}>{}</th>').format(s, self.inline(text))
            for s, text in zip(side, grid.head, strict=True)
        )
        body = Markup("").join(
            Markup("<tr>{}</tr>").format(
                Markup("").join(self._cell(cell, i, row, grid.texts) for i, cell in enumerate(row))
            )
            for row in grid.rows
        )
        title = Markup('<p class="title">{}</p>').format(self.inline(grid.title)) if grid.title else ""
        return Markup(
            '{}<div class="scroll" tabindex="0" role="region" aria-label="{}"><table><thead><tr>{}</tr></thead>'
            "<tbody>{}</tbody></table></div>"
        ).format(title, _spoken(grid.title) or "table", head, body)

    def _cell(self, cell: Cell, i: int, row: tuple[Cell, ...], texts: int) -> Markup:
        small = Markup("<small>{}</small>").format(cell.small) if cell.small else ""
        shown = self.inline(cell.text) + small
        target = self.ids.get(row[0].text, self.default)
        if i >= texts and target and cell.text != NONE and re.search(r"\d", cell.text):
            shown = Markup('<a class="n" href="#{}">{}</a>').format(target, shown)
        if i == 0:
            return Markup('<th scope="row">{}</th>').format(shown)
        names = " ".join(name for name, on in (("text", i < texts), ("strong", cell.strong)) if on)
        return Markup("<td{}>{}</td>").format(Markup(' class="{}"').format(names) if names else "", shown)


def _spoken(text: str) -> str:
    return text.replace("`", "")


def source_ids(page: Page) -> dict[str, str]:
    """Return by a source's name the id of the element that lists it."""
    return {source.name: f"{page.id}-row{number}" for number, source in enumerate(page.sources)}


def of_page(page: Page, results: Path, prefix: str = "") -> Renderer:
    """Return the renderer of a page; prefix: of the ids inside its drawings, where it is shown twice."""
    ids = source_ids(page)
    default = next(iter(ids.values()), None) if page.default else None
    return Renderer(prefix + page.id, results / "figures" / page.name, ids, default)
