"""The figure that a question asks for."""

from matplotlib.figure import Figure

from projected_grpo.cells.config import Config
from projected_grpo.pages.answer import Estimated
from projected_grpo.pages.figures.differences import forest, places
from projected_grpo.pages.figures.doses import dose, doses
from projected_grpo.pages.figures.plane import plane


def of_question(made: Estimated, config: Config) -> dict[str, Figure]:
    """Return the figure that a question asks for, by its kind; a forest where its own has no number to draw."""
    asked = made.own.question.figure
    measure, kind, drawing = asked.measure or made.own.about.name, asked.kind, None
    if kind == "plane":
        drawing = plane(made, asked.labels)
    elif kind == "places":
        drawing = places(made)
    elif kind == "dose":
        drawing = dose(made, asked.x, config, measure) if asked.x else doses(made)
    if drawing is None and kind != "plane":
        kind, drawing = "forest", forest(made, measure)
    return {kind: drawing} if drawing else {}
