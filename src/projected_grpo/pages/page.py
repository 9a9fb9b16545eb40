"""A page: Markdown from a template, its figures, and the frames beside it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path

import jinja2
import pandas as pd
from matplotlib.figure import Figure

from projected_grpo.files import atomic_folder, write_text
from projected_grpo.measures.columns import write_frame
from projected_grpo.measures.measure import MEASURES
from projected_grpo.pages import style, words


@dataclass(frozen=True)
class Page:
    """name: its path below the results folder without suffix; frames: by suffix of their file, such as `.parquet`."""

    name: str
    text: str
    figures: Mapping[str, Figure] = field(default_factory=dict)
    frames: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    log: tuple[str, ...] = ()


@cache
def environment() -> jinja2.Environment:
    """Return the templates, with what they write numbers by; an unknown name is an error."""
    loader = jinja2.FileSystemLoader(str(files("projected_grpo.pages") / "templates"))
    made = jinja2.Environment(
        loader=loader, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.filters |= words.FILTERS
    made.globals |= {"span": words.span, "change": words.change, "MEASURES": MEASURES}
    made.globals |= vars(made.get_template("tables.j2").module)
    return made


def render(template: str, **values: object) -> str:
    """Return a template filled, without runs of empty lines."""
    text = environment().get_template(template).render(**values)
    lines = "\n".join(line.rstrip() for line in text.splitlines())
    return re.sub(r"\n{3,}", "\n\n", lines).strip() + "\n"


def address(name: str) -> str:
    """Return where a page's figures lie, as seen from the page."""
    return "../" * name.count("/") + f"figures/{name}/"


def write(page: Page, results: Path) -> None:
    """Write a page's Markdown, frames and figures below the results folder."""
    with atomic_folder(results / "figures" / page.name) as folder:
        for name, drawing in page.figures.items():
            write_text(folder / f"{name}.svg", style.to_svg(drawing))
    for suffix, frame in page.frames.items():
        write_frame(frame, results / f"{page.name}{suffix}")
    write_text(results / f"{page.name}.md", page.text)
