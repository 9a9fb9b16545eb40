"""Where replays lie and how many steps they have. Rules plan with this: it imports no statistics."""

from projected_grpo.cells.config import Config
from projected_grpo.errors import UserError


def n_steps(config: Config) -> int:
    """Return how many problems of a pool have the probe's hint: the modes stand in rotation.

    Raises UserError where the pool has none.
    """
    probe, modes = config.probe, config.pool.modes
    if probe.mode not in modes:
        raise UserError(
            f"config: probe.mode {probe.mode!r} is no mode of the pool; allowed: {', '.join(modes)}"
        )
    return min(len(range(modes.index(probe.mode), config.pool.problems, len(modes))), probe.problems)


def files(folder: str, config: Config) -> list[str]:
    """Return the step files of a replay, below the results folder; folder: below its `probe`."""
    return [f"probe/{folder}/step_{step:03d}.jsonl.gz" for step in range(n_steps(config))]
