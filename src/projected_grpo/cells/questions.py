"""questions.yaml as models: a question, its rows, and the settings that a row may say."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, RootModel, StringConstraints

from projected_grpo.cells.typed import Model, Name, Text
from projected_grpo.cells.wording import ROW, RowName, Wording
from projected_grpo.schema_errors import WORDS

QUESTION = r"^[A-Za-z][A-Za-z0-9_]{0,79}$"
WORDS |= {QUESTION: "letters, digits and _", ROW: "one line without |, as it stands in the table"}
BASELINE = Field(default=None, description="Name of the row that deltas are paired against.")


class Heading(Model):
    """A row's name, the rows that it is compared with, and what it stands for in its table."""

    name: RowName = Field(description="As it stands in the table.")
    baseline: RowName | None = BASELINE
    against: RowName | None = Field(
        default=None, description="Name of a second row that this one is paired with, arm against arm."
    )

    population: Name | None = Field(
        default=None,
        description="It is a placebo: rows of one name are what others are placed in, no claims.",
    )
    kind: Name | None = Field(default=None, description="Of placebo; its population is told apart by it.")
    place_in: Name | None = Field(
        default=None, description="Population that this row is held against: its place, t and p there."
    )
    pooled: RowName | None = Field(
        default=None, description="Rows of one such name make one more: their mean by seed."
    )


class Row(Heading):
    """A row of the table: its heading, and settings of a run, which its arm has a say in (`row_setting.setting_of`)."""

    model_config = ConfigDict(extra="allow")


class Question(Wording):
    """One table."""

    title: Text = Field(description="Of the table.")
    asks: Text = Field(description="What the table answers, one sentence.")
    kind: Literal["table", "plane", "trend", "aa", "probe"] = Field(
        default="table",
        description="plane: defences by hacking and honest work; trend: effects against size or planted link; aa: the "
        "pipeline against itself; probe: a table with a verdict of its own.",
    )
    seeds: Annotated[int, Field(ge=1, le=200)] | None = Field(
        default=None, description="At most the first so many of the config's seeds; null: all."
    )
    baseline: RowName | None = BASELINE
    primary: Literal["hack", "solve", "known_hack"] | None = Field(
        default=None,
        description="Measure that the answer is about; if missing, the hack rate, ablated or held out where the rows "
        "call for it.",
    )
    settings: dict[str, Any] = Field(
        default={}, description="Settings of every row that does not say otherwise."
    )
    rows: Annotated[tuple[Row, ...], Field(strict=False, min_length=1, max_length=1_000)] = Field(
        description="Settings of runs, in the order of the table."
    )

    def compared(self, contrast: str | None = None) -> list[str]:
        """Return what a contrast of the table of estimates is of: combinations, where it is declared, else rows."""
        if contrast in self.contrasts:
            return list(self.contrasts[contrast])
        names = [row.name for row in self.rows]
        return [*names, *dict.fromkeys(row.pooled for row in self.rows if row.pooled is not None)]


class Questions(RootModel[dict[Annotated[str, StringConstraints(pattern=QUESTION)], Question]]):
    """One table per question; a row is a setting of a run."""
