"""Everything that decides a run's numbers beside its files, as one typed value that travels to the job as JSON."""

from pydantic import BaseModel, ConfigDict, PositiveInt

from projected_grpo.cells.setting import Setting


class Training(BaseModel):
    """Hyper-parameters of one run: what the config's `grpo`, the row's preset, mix and adapter come to."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    steps: PositiveInt
    group: PositiveInt  # rows a prompt, teacher's among them
    prompts: PositiveInt  # a step
    max_new: PositiveInt  # tokens of a completion
    lr: float
    betas: tuple[float, float]
    weight_decay: float
    clip: float | None = None  # limit of the gradient's norm
    warmup: float  # share of the steps
    beta: float  # weight of the K3 KL term
    micro_batch_tokens: PositiveInt


class Use(BaseModel):
    """How a stored basis is used."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    k: PositiveInt  # axes
    drop_bottom_frac: float = 0.0  # noise floor over all stored axes


class RunSettings(BaseModel):
    """The settings of a run; `basis`: the basis file's name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int
    setting: Setting
    training: Training
    basis: str | None = None
    use: Use | None = None
