"""What a special page returns: blocks, its numbers as a frame, its figures, and what the log says."""

from dataclasses import dataclass, field, replace

import pandas as pd
from matplotlib.figure import Figure

from projected_grpo.pages.blocks import Page as Blocks
from projected_grpo.pages.markdown import to_markdown
from projected_grpo.pages.page import Page

Drawn = dict[str, tuple[Figure, str]]  # name -> (figure, caption)


@dataclass(frozen=True)
class Verdict:
    """A page of blocks; `to_page` gives what is written."""

    page: Blocks
    frame: pd.DataFrame
    drawn: Drawn = field(default_factory=dict)
    log: tuple[str, ...] = ()

    def to_page(self, banner: str = "") -> Page:
        """Return the page as Markdown with its figures and its frame, under a banner."""
        text = to_markdown(replace(self.page, banner=banner))
        figures = {name: drawing for name, (drawing, _) in self.drawn.items()}
        return Page(self.page.name, text, figures, {".parquet": self.frame}, self.log)
