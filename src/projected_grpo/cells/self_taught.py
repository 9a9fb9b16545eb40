"""The self-taught evaluator's part of the config."""

from typing import Annotated, Literal

from pydantic import Field

from projected_grpo.cells.typed import Count, Model, Rate, Text, Tokens

Rank = Annotated[int, Field(ge=1, le=10_000)]
Tries = Annotated[int, Field(ge=1, le=1_000)]
Price = Annotated[float, Field(ge=0, le=1_000_000)]


class CriticTraining(Model):
    """LoRA training of the critic."""

    rank: Rank = Field(description="Of the LoRA.")
    alpha: Rank = Field(description="Of the LoRA.")
    lr: Rate = Field(description="Before any round.")
    batch: Count = Field(description="Examples a step.")
    steps: Count = Field(description="Before any round.")
    calibration_lr: Rate = Field(description="Of each round.")
    calibration_steps: Count = Field(description="Of each round.")


class Server(Model):
    """How an OpenAI-compatible server is asked."""

    concurrency: Tries = Field(default=8, description="Requests at a time.")
    timeout: Annotated[float, Field(gt=0, le=86_400)] = Field(default=60.0, description="Seconds.")
    retries: Annotated[int, Field(ge=0, le=1_000)] = Field(default=3, description="Of a request that failed.")
    patience: Tries = Field(default=20, description="Failed requests in a row that end the job.")
    price_in: Price | None = Field(default=None, description="Of a million tokens asked.")
    price_out: Price | None = Field(default=None, description="Of a million tokens answered.")


ALIKE = "alike"


class SelfTaught(Model):
    """A critic that learns from contrast pairs of its own traces."""

    critic: Literal["trained", "local", "server", "none"] = Field(
        description="trained: a LoRA on the base; local: a Hugging Face checkpoint; server: OpenAI-compatible."
    )
    model: Text | None = Field(description="Of a local or served critic; null: the base, or OPENAI_MODEL.")
    adapter: Text | None = Field(description="PEFT folder or hub id on a local critic; null for none.")
    temperature: Annotated[float, Field(ge=0, le=100)] = Field(
        description="At which wrong evaluations are sampled."
    )
    attempts: Tries = Field(description="How often a step is asked about while its answer is unusable.")
    max_tokens: Tokens = Field(description="Of an answer.")
    cards_in_context: Annotated[int, Field(ge=0, le=1_000)] = Field(
        description="Card pairs before a question; 0: left out where the critic is trained."
    )
    rounds: Tries = Field(description="Of asking, judging and calibrating.")
    pool: Count = Field(description="Traces that a round looks at.")
    per_round: Count = Field(description="Of those, the ones with the largest error are asked about.")
    measured: Count = Field(description="Traces of other problems that show the critic's error.")
    min_delta: Annotated[float, Field(ge=0, le=10)] = Field(
        description="Events that moved the score by less are left out."
    )
    pairs: Count = Field(description="Pairs of each set that is written.")
    grid: Text | None = Field(
        default=None,
        description="Second size of a trained critic's base, for results/self_taught_grid.md; null: no such page.",
    )
    training: CriticTraining
    server: Server
