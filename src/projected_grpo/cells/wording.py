"""What a question says in words and draws, as it stands in `questions.yaml`: data for the templates of pages."""

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints

from projected_grpo.cells.typed import Model, Text

ROW = r"^[^|\x00-\x1f\x7f-\x9f\u2028\u2029]{1,200}$"
RowName = Annotated[str, StringConstraints(pattern=ROW)]
Weights = Annotated[dict[RowName, Annotated[float, Field(ge=-100, le=100)]], Field(min_length=1)]


@cache
def quoted(wording: str) -> tuple[tuple[str, str, str | None], ...]:
    """Return (row, contrast, measure) of each line that a sentence quotes, as `of(ROW, CONTRAST, MEASURE)`.

    By default it is the rate and, as None, the question's own measure.
    """
    from jinja2 import Environment, nodes  # a basis and a run have no sentence

    calls = Environment().parse(wording).find_all(nodes.Call)
    own = (call for call in calls if isinstance(call.node, nodes.Name) and call.node.name == "of")
    said = ([one.as_const() for one in call.args] for call in own)
    return tuple((each[0], (each[1:2] or ["rate"])[0], (each[2:3] or [None])[0]) for each in said)


def _parsed(wording: str) -> str:
    from jinja2 import TemplateSyntaxError, nodes

    try:
        quoted(wording)
    except TemplateSyntaxError as error:
        raise ValueError(f"a sentence in Jinja ({error.message})") from error
    except (nodes.Impossible, IndexError) as error:
        raise ValueError("`of('ROW')`, its words in quotes") from error
    return wording


Sentence = Annotated[Text, AfterValidator(_parsed)]


class Says(Model):
    """One sentence of an answer: which estimate it is about, and its wording for each verdict, as Jinja."""

    row: RowName = Field(description="Row, or name of a declared combination.")
    contrast: RowName = Field("baseline", description="As in the table of estimates.")
    measure: RowName | None = Field(None, description="null: the question's own.")
    effect: Sentence = Field(description="Where the wanted difference is shown.")
    opposite: Sentence | None = Field(None, description="Where the other one is; null: plain words.")
    not_shown: Sentence = Field(description="Where none is.")
    uninformative: Sentence | None = Field(None, description="Where there is nothing to lower.")
    missing: Sentence | None = Field(None, description="Where there is no number.")


class Draws(Model):
    """The figure of a page."""

    kind: Literal["forest", "dose", "plane", "places"] = Field("forest", description="Which figure.")
    x: Literal["mix", "k", "refresh", "size", "rho"] | None = Field(
        None, description="Axis of a dose; null: a panel a defence, against its own knob."
    )
    measure: RowName | None = Field(None, description="null: the question's own.")
    labels: Annotated[tuple[RowName, ...], Field(strict=False, max_length=7)] = Field(
        (), description="Of a plane: the rows that have their name beside them."
    )


class Matrix(Model):
    """Rows of a question as a table of two sides: the change of each, by the two parts of its name."""

    title: Text = Field(description="Over the table.")
    corner: Text = Field(description="What its rows are, and what its columns are.")
    name: RowName = Field(description="Of a row of the question, as `{row} alone, without {column}`.")
    rows: tuple[RowName, ...] = Field(strict=False, min_length=2, max_length=20)
    columns: tuple[RowName, ...] = Field(strict=False, min_length=2, max_length=8)

    def of(self, row: str, column: str) -> str:
        """Return the name of a row by its two parts."""
        return self.name.replace("{row}", row).replace("{column}", column)


class Wording(Model):
    """What a page says and shows beside its numbers."""

    says: tuple[Says, ...] = Field((), strict=False, max_length=2, description="The answer: sentences.")
    limits: tuple[Text, ...] = Field((), strict=False, max_length=5, description="What it does not show.")
    figure: Draws = Field(Draws(), description="The figure of its page.")
    shown: Annotated[tuple[RowName, ...], Field(strict=False, max_length=8)] = Field(
        (), description="Rows of the first table; empty: those of the answer, then the largest differences."
    )
    measures: tuple[RowName, ...] = Field(
        (),
        strict=False,
        max_length=10,
        description="Measures that are compared beside those of every question.",
    )
    matrix: Matrix | None = Field(None, description="Rows that are read as a table of two sides.")
    contrasts: dict[RowName, dict[RowName, Weights]] = Field(
        {}, description="Rows weighted by seed, tested against zero: contrast -> name -> row -> its weight."
    )

    def named_rows(self) -> Iterator[tuple[list[Any], str]]:
        """Yield (keys, name) of every row that is named."""
        for contrast, combinations in self.contrasts.items():
            for name, weights in combinations.items():
                yield from ((["contrasts", contrast, name], row) for row in weights)
        yield from ((["shown"], row) for row in self.shown)
        yield from ((["figure"], row) for row in self.figure.labels)
        if matrix := self.matrix:
            pairs = ((row, column) for row in matrix.rows for column in matrix.columns if row != column)
            yield from ((["matrix", "name"], matrix.of(*pair)) for pair in pairs)

    def lines(self) -> Iterator[tuple[list[Any], str, str, str | None]]:
        """Yield (keys, row, contrast, measure) of each line of the table of estimates that a sentence is of."""
        for number, one in enumerate(self.says):
            yield ["says", number], one.row, one.contrast, one.measure
            for verdict in ("effect", "opposite", "not_shown", "uninformative", "missing"):
                for line in quoted(getattr(one, verdict) or ""):
                    yield ["says", number, verdict], *line
