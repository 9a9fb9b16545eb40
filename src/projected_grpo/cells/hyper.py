"""The numbers of a run's training."""

from typing import Annotated

from pydantic import Field

from projected_grpo.cells.typed import (
    Count,
    Factor,
    GroupSize,
    Model,
    Part,
    Problems,
    Rate,
    Share,
    Tokens,
    Weight,
)


class Hyper(Model):
    """What a preset may say in place of `grpo`."""

    max_new: Tokens = Field(description="Tokens a completion may have.")
    prompts: Problems = Field(description="Prompts a step.")
    lr: Rate = Field(description="Learning rate.")
    betas: Annotated[tuple[Part, Part], Field(strict=False)] = Field(description="Of AdamW.")
    weight_decay: Weight = Field(description="Of AdamW.")
    clip: Factor | None = Field(description="Gradient norm limit; null for none.")
    warmup: Share = Field(description="Share of the steps.")
    beta: Weight = Field(description="Weight of the K3 KL term to the reference.")
    micro_batch_tokens: Annotated[int, Field(ge=1, le=100_000_000)] = Field(
        description="Tokens of one forward and backward."
    )
    teacher_steps: Count | None = Field(
        description="Steps with teacher rows; after them live ones take their place. Null: all."
    )


class Training(Hyper):
    """All numbers of one run's training."""

    steps: Count
    group: GroupSize

    def teacher_rows(self, mix: float, step: int = 1) -> int:
        """Return G_t = round(G mix), the rows of a group that come from the teacher's pool at a step."""
        over = self.teacher_steps is not None and step > self.teacher_steps
        return 0 if over else round(self.group * mix)
