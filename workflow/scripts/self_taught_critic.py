"""Rollouts + base model -> the uncalibrated critic, a PEFT folder."""

from pathlib import Path

from projected_grpo.cells.self_taught import SelfTaught
from projected_grpo.evaluator.jobs import make_critic
from projected_grpo.job import job

with job(snakemake):
    params = snakemake.params
    make_critic(
        rollouts=[Path(path) for path in snakemake.input.rollouts],
        base=params.base,
        folder=Path(snakemake.output[0]).parent,
        settings=SelfTaught.model_validate(snakemake.config["self_taught"]),
        seed=params.seed,
        alike=params.alike,
    )
