"""Everything that decides a run's numbers beside its files, as one typed value that travels to the job as JSON."""

from typing import Annotated, Literal

from pydantic import Field

from projected_grpo.cells.hyper import Training
from projected_grpo.cells.setting import Setting
from projected_grpo.cells.typed import Axes, Model, Part, Seed, Text


class Use(Model):
    """How much of a stored basis a run uses."""

    k: Axes
    drop_bottom_frac: Part


class Direction(Model):
    """Of which pairs a direction of the residual stream is the mean difference."""

    n_pairs: Axes
    n_heldout: Annotated[int, Field(ge=0, le=10_000)]
    without_tag: Text | None
    with_tag: Text | None
    is_generated: bool
    control: Literal["none", "random"]


class RunSettings(Model):
    """The settings of a run; `basis`: the basis file's name."""

    seed: Seed
    setting: Setting
    training: Training
    basis: str | None = None
    use: Use | None = None
    direction: Direction | None = None
