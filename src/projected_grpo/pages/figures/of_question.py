"""The figure that a question asks for."""

from matplotlib.figure import Figure

from projected_grpo.cells.config import Config
from projected_grpo.pages.answer import Estimated
from projected_grpo.pages.figures.differences import forest, places
from projected_grpo.pages.figures.doses import dose, doses
from projected_grpo.pages.figures.plane import plane


def of_question(made: Estimated, config: Config) -> Figure | None:
    """Return the figure that a question asks for; None where there is no number to draw."""
    asked = made.own.question.figure
    measure, drawing = asked.measure or made.own.about.name, None
    if asked.kind == "plane":
        return plane(made, asked.labels)
    if asked.kind == "places":
        drawing = places(made)
    elif asked.kind == "dose":
        drawing = dose(made, asked.x, config, measure) if asked.x else doses(made)
    return drawing or forest(made, measure)
