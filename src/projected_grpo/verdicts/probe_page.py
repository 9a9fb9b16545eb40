"""The page of an R question: the table as for every question, then its own verdict; and its figures."""

from collections.abc import Mapping
from pathlib import Path

from matplotlib.figure import Figure

from projected_grpo.cells.config import Config
from projected_grpo.files import atomic, write_json, write_text
from projected_grpo.pages.figures import of_question
from projected_grpo.pages.markdown import to_markdown
from projected_grpo.pages.style import to_svg
from projected_grpo.pages.table import Table, to_frame


def write_page(
    table: Table,
    sections: list[str],
    figures: Mapping[str, tuple[Figure | None, str]],
    config: Config,
    md: Path,
    parquet: Path,
    folder: Path,
) -> None:
    """Write the question's Markdown and Parquet, and the SVG files with `captions.json` into `folder`.

    figures: name -> (figure or None, caption), put behind those that every table has.
    """
    drawn = of_question(table, config) | {name: pair for name, pair in figures.items() if pair[0] is not None}
    captions, links = {}, []
    for name, (drawing, caption) in drawn.items():
        write_text(folder / f"{name}.svg", to_svg(drawing))
        captions[name] = caption
        if name != "summary":  # the small forest plot of first screens
            links.append(f"![{caption}](figures/{folder.name}/{name}.svg)")
    write_json(folder / "captions.json", captions)
    with atomic(parquet) as path:
        to_frame(table).to_parquet(path, index=False)
    write_text(md, "\n\n".join([to_markdown(table).rstrip("\n"), *sections, *links]) + "\n")
