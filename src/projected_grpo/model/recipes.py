"""Recipes of what is trained before any run: a small base, a given model's warm start, a teacher's LoRA.

Free of torch.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

Count = Annotated[int, Field(ge=1, le=1_000_000)]
Positive = Annotated[float, Field(gt=0, le=1e6)]
Part = Annotated[float, Field(ge=0, le=1)]
Decay = Annotated[float, Field(ge=0, lt=1)]  # of a running mean: at 1 it would never move


class _Recipe(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class BaseRecipe(_Recipe):
    """Shape and training of the base; rates are peaks of a linear warm-up and a linear decay to `final` of them."""

    hidden: Count = 128
    layers: Count = 4
    heads: Count = 4
    kv_heads: Count = 2
    head_dim: Count = 32
    mlp: Count = 384
    rope_theta: Positive = 1e4
    init_std: Positive = 0.02
    batch_tokens: Count = Field(1150, description="Tokens of a step, prompts and completions.")
    muon_lr: Positive = 0.02
    muon_momentum: Decay = 0.95
    muon_decay: Part = 0.1
    muon_steps: Count = Field(5, description="Newton-Schulz iterations.")
    adam_lr: Positive = 3e-3
    adam_betas: Annotated[tuple[Decay, Decay], Field(strict=False)] = (0.9, 0.95)
    adam_decay: Part = 0.01
    warmup: Count = 30
    final: Part = 0.03
    clip: Positive = 1.0

    @model_validator(mode="after")
    def _is_a_shape(self) -> "BaseRecipe":
        if self.heads % self.kv_heads:
            allowed = f"kv_heads that divide heads, not {self.kv_heads} of {self.heads}"
            raise PydanticCustomError("value_error", allowed)
        if self.head_dim % 2:
            raise PydanticCustomError(
                "value_error", f"an even head_dim, not {self.head_dim}: it is turned in pairs"
            )
        return self


class TeacherRecipe(_Recipe):
    """LoRA on the seven Linears of every layer, AdamW with a short warm-up and a linear decay to `final`."""

    rank: Count = 16
    alpha: Count = 32
    batch_tokens: Count = 1150
    lr: Positive = 2e-3
    warmup: Count = 10
    final: Part = 0.03


class WarmStart(_Recipe):
    """A given model on honest solutions of the family: all weights, AdamW with a short warm-up and a linear decay."""

    examples: Annotated[int, Field(ge=1, le=10_000_000)] = Field(600, description="Honest solutions.")
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = Field(
        41,
        description="Of warm start, teacher and pool, another one is another model; null: each seed has its own.",
    )
    lr: Positive = 5e-5
    batch_tokens: Count = Field(2000, description="Tokens of a step, prompts and completions.")
    betas: tuple[Part, Part] = (0.9, 0.999)
    warmup: Count = 4
    final: Part = 0.1
    clip: Positive = 1.0


BASE, TEACHER = BaseRecipe(), TeacherRecipe()
