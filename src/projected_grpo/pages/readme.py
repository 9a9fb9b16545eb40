"""What `make publish` writes into the README: a figure, the findings that `docs/readme.yaml` names, a caution."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from projected_grpo.errors import UserError
from projected_grpo.files import write_text
from projected_grpo.pages.answer import Estimated, caution, sentences
from projected_grpo.pages.page import render
from projected_grpo.strict_yaml import read_mapping

OPEN, CLOSE = "<!-- written by make publish -->", "<!-- /written by make publish -->"
ASKED = Path("docs/readme.yaml")


def write(
    file: Path, made: Mapping[str, Estimated], docs: Path, outcomes: pd.DataFrame | None = None
) -> None:
    """Fill the README between its two marks; it stays as it is where the figure's question has no number.

    Raises UserError where it has not both marks, in order.
    """
    asked = read_mapping(ASKED)
    shown = asked["figure"]
    if shown not in made:
        return
    kind = made[shown].own.question.figure.kind
    said = {key: [_said(made, outcomes, one) for one in asked[key]] for key in ("findings", "failed")}
    text = render("readme.md.j2", docs=docs, figure=f"{shown}-{kind}", **said)
    page = file.read_text(encoding="utf-8")
    before, opened, rest = page.partition(OPEN)
    _, closed, after = rest.partition(CLOSE)
    if not opened or not closed:
        raise UserError(
            f"{file}: no line {(CLOSE if opened else OPEN)!r}; `make publish` writes between the two"
        )
    write_text(file, f"{before}{OPEN}\n\n{text.strip()}\n\n{CLOSE}{after}")


def _said(made: Mapping[str, Estimated], outcomes: pd.DataFrame | None, one: str) -> tuple[str, str]:
    """Return (question, its answer) of `Q10`, or of `Q10.2` its second sentence alone."""
    name, _, number = one.partition(".")
    if name not in made:
        return name, ""
    found = sentences(made[name], outcomes)
    own = [found[int(number) - 1]] if number else [*found, caution(made[name], outcomes)]
    return name, " ".join(filter(None, own))
