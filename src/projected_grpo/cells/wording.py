"""What a question says in words and draws, as it stands in `questions.yaml`: data for the templates of pages."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from projected_grpo.cells.typed import Model, Text

ROW = r"^[^|\x00-\x1f\x7f-\x9f]{1,200}$"
RowName = Annotated[str, StringConstraints(pattern=ROW)]
Weights = Annotated[dict[RowName, Annotated[float, Field(ge=-100, le=100)]], Field(min_length=1)]


class Says(Model):
    """One sentence of an answer: which estimate it is about, and its wording for each verdict, as Jinja."""

    row: RowName = Field(description="Row, or name of a declared combination.")
    contrast: RowName = Field(default="baseline", description="As in the table of estimates.")
    measure: RowName | None = Field(default=None, description="null: the question's own.")
    effect: Text = Field(description="Where the wanted difference is shown.")
    opposite: Text | None = Field(
        default=None, description="Where the other one is; null: the template's words."
    )
    not_shown: Text = Field(description="Where none is.")
    uninformative: Text | None = Field(default=None, description="Where there is nothing to lower.")
    missing: Text | None = Field(default=None, description="Where there is no number.")


class Draws(Model):
    """The figure of a page."""

    kind: Literal["forest", "dose", "plane", "places"] = Field(default="forest", description="Which figure.")
    x: Literal["mix", "k", "refresh", "size", "rho"] | None = Field(
        default=None, description="Of a dose: the number to the right."
    )
    measure: RowName | None = Field(default=None, description="null: the question's own.")
    labels: Annotated[tuple[RowName, ...], Field(strict=False, max_length=7)] = Field(
        default=(), description="Of a plane: the rows that have their name beside them."
    )


class Wording(Model):
    """What a page says and shows beside its numbers."""

    says: Annotated[tuple[Says, ...], Field(strict=False, max_length=2)] = Field(
        default=(), description="The answer, at most two sentences."
    )
    limits: Annotated[tuple[Text, ...], Field(strict=False, max_length=5)] = Field(
        default=(), description="What the question does not show."
    )
    figure: Draws = Field(default=Draws(), description="The figure of its page.")
    shown: Annotated[tuple[RowName, ...], Field(strict=False, max_length=8)] = Field(
        default=(),
        description="Rows of the first table; empty: those of the answer, then the largest differences.",
    )
    measures: Annotated[tuple[RowName, ...], Field(strict=False, max_length=10)] = Field(
        default=(), description="Measures that are compared beside those of every question."
    )
    contrasts: Annotated[dict[RowName, dict[RowName, Weights]], Field()] = Field(
        default={},
        description="Combinations of rows by seed, tested against zero: contrast -> name -> row -> its weight.",
    )

    def named_rows(self) -> Iterator[tuple[list[Any], str]]:
        """Yield (keys, name) of every row that is named."""
        for contrast, combinations in self.contrasts.items():
            for name, weights in combinations.items():
                for row in weights:
                    yield ["contrasts", contrast, name], row
        for key, names in (("shown", self.shown), ("figure", self.figure.labels)):
            for row in names:
                yield [key], row
        for number, one in enumerate(self.says):
            if one.contrast not in self.contrasts and one.contrast != "slope":
                yield ["says", number, "row"], one.row
