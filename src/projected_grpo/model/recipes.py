"""Recipes of the small models: shape and training of a base, and of the hacking teacher's LoRA. Free of torch."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=1, le=1_000_000)]
Positive = Annotated[float, Field(gt=0, le=1e6)]
Part = Annotated[float, Field(ge=0, le=1)]


class _Recipe(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


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
    muon_momentum: Positive = 0.95
    muon_decay: Part = 0.1
    muon_steps: Count = Field(5, description="Newton-Schulz iterations.")
    adam_lr: Positive = 3e-3
    adam_betas: tuple[Part, Part] = (0.9, 0.95)
    adam_decay: Part = 0.01
    warmup: Count = 30
    final: Part = 0.03
    clip: Positive = 1.0


class TeacherRecipe(_Recipe):
    """LoRA on the seven Linears of every layer, AdamW with a short warm-up and a linear decay to `final`."""

    rank: Count = 16
    alpha: Count = 32
    batch_tokens: Count = 1150
    lr: Positive = 2e-3
    warmup: Count = 10
    final: Part = 0.03


BASE, TEACHER = BaseRecipe(), TeacherRecipe()
