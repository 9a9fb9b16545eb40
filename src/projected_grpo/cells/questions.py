"""questions.yaml as models: a question, its rows, and the settings that a row may say."""

from typing import Annotated, Literal

from pydantic import Field, RootModel, StringConstraints

from projected_grpo.cells.config import Mode
from projected_grpo.cells.knobs import Adapter
from projected_grpo.cells.typed import (
    WORDS,
    Axes,
    Factor,
    Model,
    NonEmpty,
    Rate,
    Share,
    Stream,
    Text,
    partial,
)

QUESTION = r"^[A-Za-z][A-Za-z0-9_]{0,79}$"
ROW = r"^[^|\x00-\x1f\x7f-\x9f]{1,200}$"
WORDS[QUESTION] = "letters, digits and _"
WORDS[ROW] = "one line without |, as it stands in the table"
RowName = Annotated[str, StringConstraints(pattern=ROW)]
BASELINE = Field(default=None, description="Name of the row that deltas are paired against.")


class Settings(Model):
    """Settings of every row that does not say otherwise."""

    arm: Literal["vanilla", "erase", "route"] = Field(
        default="vanilla", description="What is done against hacking."
    )
    basis: Text | None = Field(default=None, description="A name under bases in the config, or a pair set.")
    measure: bool = Field(default=False, description="vanilla that only measures against basis.")
    gate: Literal["one_sided", "no_gate", "reverse"] = Field(
        default="one_sided",
        description="Which part along the axes is removed: the hack-ward one, both, both twice.",
    )
    k: Axes | None = Field(default=None, description="Axes used; null: the basis's own.")
    overshoot: Factor = Field(default=1.0, description="How often that part is removed.")
    preserve_magnitude: bool = Field(default=False, description="The rest is scaled to the gradient's norm.")
    refresh: Annotated[int, Field(ge=0, le=100_000)] = Field(
        default=0, description="Re-extract every N steps; 0: frozen."
    )
    space: Literal["gradient", "update"] = Field(
        default="gradient", description="What is projected: the gradient, or what AdamW is about to apply."
    )
    adapter: Adapter = Field(default="antipasto", description="What is trained; as that of the basis.")
    lr: Rate | None = Field(default=None, description="Learning rate; null: the config's.")
    off_policy: bool = Field(default=False, description="The teacher rows' ratio enters the loss.")
    mix: Share = Field(default=0.125, description="Teacher share of a group.")
    preset: Text = Field(default="fast", description="A name under grpo.presets in the config.")
    modes: NonEmpty[Mode] | None = Field(
        default=None, description="Loopholes of the problems; null: those of the pool."
    )
    held_out_mode: Mode | None = Field(default=None, description="Its prompts get live samples only.")
    final_eval: bool = Field(default=False, description="Kept and ablated rates after the last step.")
    stream: Stream = Field(default=0, description="Sampling stream within a replication.")


class Heading(Model):
    """A row's name and the rows that it is compared with."""

    name: RowName = Field(description="As it stands in the table.")
    baseline: RowName | None = BASELINE
    against: RowName | None = Field(
        default=None, description="Name of a second row that this one is paired with, arm against arm."
    )


class Row(Settings, Heading):
    """A row of the table: a setting of a run."""


class Question(Model):
    """One table."""

    title: Text = Field(description="Of the table.")
    asks: Text = Field(description="What the table answers, one sentence.")
    kind: Literal["table", "aa", "probe"] = Field(
        default="table",
        description="aa: the pipeline against itself; probe: a table with a verdict of its own.",
    )
    baseline: RowName | None = BASELINE
    primary: Literal["hack", "solve"] | None = Field(
        default=None,
        description="Measure that the answer is about; if missing, the hack rate, ablated or held out where the rows "
        "call for it.",
    )
    settings: partial(Settings, "Settings") = Field(
        default={}, validate_default=True, description="Settings of every row that does not say otherwise."
    )
    rows: Annotated[tuple[Row, ...], Field(strict=False, min_length=1, max_length=1_000)] = Field(
        description="Settings of runs, in the order of the table."
    )


class Questions(RootModel[dict[Annotated[str, StringConstraints(pattern=QUESTION)], Question]]):
    """One table per question; a row is a setting of a run."""
