"""Rollouts + critic -> cards, and the critic's evaluations before and after."""

from pathlib import Path

from projected_grpo.cells.self_taught import SelfTaught
from projected_grpo.evaluator.jobs import run_self_taught
from projected_grpo.job import job

with job(snakemake):
    params, critic = snakemake.params, snakemake.input.critic
    journal = run_self_taught(
        rollouts=[Path(path) for path in snakemake.input.rollouts],
        base=params.base,
        critic_folder=str(Path(critic[0]).parent) if critic else None,
        folder=Path(snakemake.output.run).parent,
        journal=Path(params.journal),
        settings=SelfTaught.model_validate(snakemake.config["self_taught"]),
        machine=params.machine,
        model=snakemake.wildcards.critic,
        seed=params.seed,
        alike=params.alike,
    )
journal.unlink()  # the job's record stands, so nobody has to ask again
