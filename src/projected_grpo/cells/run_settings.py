"""Everything that decides a run's numbers beside its files, as one typed value that travels to the job as JSON."""

from projected_grpo.cells.hyper import Training
from projected_grpo.cells.knobs import Direction, Use
from projected_grpo.cells.setting import Setting
from projected_grpo.cells.typed import Model, Seed


class RunSettings(Model):
    """The settings of a run; `basis`: the basis file's name."""

    seed: Seed
    setting: Setting
    training: Training
    basis: str | None = None
    use: Use | None = None
    direction: Direction | None = None
