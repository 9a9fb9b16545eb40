"""Blocks as Markdown."""

import html

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
    left_out,
)


def _cell(cell: Cell) -> str:
    small = cell.small and (cell.small if cell.small.startswith("[") else f"({cell.small})")
    text = f"{cell.text} {small}".strip()
    return text.replace("|", "\\|").replace("\n", " ")


def _grid(grid: Grid) -> str:
    rule = ["---" if i < grid.texts else "---:" for i in range(len(grid.head))]
    lines = [list(grid.head), rule, *([_cell(cell) for cell in row] for row in grid.rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def render(blocks: tuple, figures: str) -> str:
    """Return blocks as Markdown. figures: prefix of the address of an SVG file."""
    return "\n\n".join(filter(None, (_block(block, figures) for block in blocks)))


def _block(block: object, figures: str) -> str:
    match block:
        case Heading(text):
            return f"## {text}"
        case Paragraph(text, lead):
            return f"**{lead}** {text}".strip() if lead else text
        case Listing(items):
            return "\n".join(f"- {item}" for item in items)
        case Grid():
            return (f"**{block.title}.**\n\n" if block.title else "") + _grid(block)
        case Figure(name, caption):
            return f"![{caption}]({figures}{name}.svg)\n\n*{caption}*"
        case Details(summary, inner):
            return f"**{summary}.**\n\n{render(inner, figures)}"
        case Pre(text):
            return f"<pre>{html.escape(text)}</pre>"
        case Foreign(text):
            return text
    raise TypeError(f"{block!r} is no block")


def to_markdown(page: Page, figures: str | None = None) -> str:
    """Return a whole page; figures: prefix of the addresses of its figures, by default as seen from the page."""
    if figures is None:
        figures = "../" * page.name.count("/") + f"figures/{page.name}/"
    sources = "\n".join(f"{s.name}: {', '.join([*s.cells, *s.files]) or 'no run'}" for s in page.sources)
    parts = [
        f"# {page.title}",
        page.banner and f"> **{page.banner}**",
        page.asks,
        render((Paragraph("", "Answer."), *page.answer), figures) if page.answer else "",
        render((*page.blocks, *left_out(page.left_out)), figures),
        f"<!-- sources\n{sources}\n-->" if page.sources else "",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"
