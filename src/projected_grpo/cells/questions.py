"""questions.yaml as models: a question, its rows, and the settings that a row may say."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, RootModel, StringConstraints

from projected_grpo.cells.typed import Model, Name, Text
from projected_grpo.cells.wording import ROW, RowName, Wording
from projected_grpo.errors import nearest
from projected_grpo.schema_errors import WORDS, ascii_repr

QUESTION = r"^[A-Za-z][A-Za-z0-9_]{0,79}$"
WORDS |= {QUESTION: "letters, digits and _", ROW: "one line without |, as it stands in the table"}
OTHER_ROWS = ("baseline", "against")  # keys of a row that name another row of its question
BASELINE = Field(None, description="Name of the row that deltas are paired against.")


class Heading(Model):
    """A row's name, the rows that it is compared with, and what it stands for in its table."""

    name: RowName = Field(description="As it stands in the table.")
    baseline: RowName | None = BASELINE
    against: RowName | None = Field(None, description="Name of a second row that it is paired with.")
    population: Name | None = Field(None, description="It is a placebo of this population, no claim.")
    place_in: Name | None = Field(None, description="Population that it has its place, t and p in.")
    pooled: RowName | None = Field(None, description="Rows of one such name make one more: their mean.")


class Row(Heading):
    """A row of the table: its heading, and settings of a run, in which its arm has a say (`make_setting`)."""

    model_config = ConfigDict(extra="allow")


class Question(Wording):
    """One table."""

    title: Text = Field(description="Of the table.")
    asks: Text = Field(description="What the table answers, one sentence.")
    kind: Literal["table", "plane", "trend", "aa", "probe"] = Field(
        "table",
        description="plane: defences by hacking and honest work; trend: effects against size or planted link; aa: the "
        "pipeline against itself; probe: a table with a verdict of its own.",
    )
    seeds: int | None = Field(None, ge=1, le=200, description="First so many of the config's; null: all.")
    baseline: RowName | None = BASELINE
    primary: Literal["hack", "solve", "known_hack", "auroc_last"] | None = Field(
        None, description="What the answer is about; null: the hack rate that its rows call for."
    )
    settings: dict[str, Any] = Field({}, description="Of every row that does not say otherwise.")
    rows: Annotated[tuple[Row, ...], Field(strict=False, min_length=1, max_length=1_000)] = Field(
        description="Settings of runs, in the order of the table."
    )

    def baseline_of(self, row: Heading) -> str | None:
        """Return the name of the row that a row's deltas are paired against; None for itself."""
        own = row.baseline if "baseline" in row.model_fields_set else self.baseline
        return None if own == row.name else own

    def compared(self, contrast: str | None = None) -> list[str]:
        """Return what a contrast of the table of estimates is of: combinations, where it is declared, else rows."""
        if contrast in self.contrasts:
            return list(self.contrasts[contrast])
        names = [row.name for row in self.rows]
        return [*names, *dict.fromkeys(row.pooled for row in self.rows if row.pooled is not None)]

    def parts_of(self, name: str | None) -> list[str]:
        """Return the rows whose mean stands under a `pooled` name; none where it is of fewer than two."""
        parts = [row.name for row in self.rows if name is not None and row.pooled == name]
        return parts if len(parts) > 1 else []

    def contrasts_of(self, row: str) -> list[str]:
        """Return the contrasts that a table may have of a row or combination, the rate aside; a slope's are series."""
        own = next((one for one in self.rows if one.name == row), None)
        is_pooled = bool(self.parts_of(row))
        asked = {
            "baseline": own and self.baseline_of(own),
            "random": own and self.baseline_of(own),
            "against": own and own.against,
            "place": own and own.place_in,
            "itself": own or is_pooled,
            "pooled": is_pooled,
            "pooled, random": is_pooled,
            "frontier": self.kind == "plane" and (is_pooled or (own and not self.parts_of(own.pooled))),
            "slope": self.kind == "trend",
        }
        declared = (name for name, combinations in self.contrasts.items() if row in combinations)
        return [*(name for name, is_there in asked.items() if is_there), *declared]

    def misnamed(self, row: str, contrast: str, *also: str) -> Iterator[tuple[str, str, str]]:
        """Yield (key, problem, hint) of a row and a contrast that no line of the table has; also: contrasts that do."""
        rows, contrasts = self.compared(contrast), [*also, *self.contrasts_of(row)]
        if row not in rows and contrast != "slope":
            yield "row", f"no row {ascii_repr(row)}", nearest(row, rows)
        if contrast not in contrasts:
            yield "contrast", f"{ascii_repr(contrast)} of {ascii_repr(row)}", nearest(contrast, contrasts)


class Questions(RootModel[dict[Annotated[str, StringConstraints(pattern=QUESTION)], Question]]):
    """One table per question; a row is a setting of a run."""
