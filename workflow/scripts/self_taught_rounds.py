"""Rollouts + critic -> cards, and the critic's evaluations before and after."""

import json
from pathlib import Path

from projected_grpo.evaluator.jobs import run_self_taught
from projected_grpo.job import job

with job(snakemake):
    params, critic = snakemake.params, snakemake.input.critic
    # How a server is asked is no parameter: another timeout changes no answer and must rerun nothing.
    transport = {"server": snakemake.config["self_taught"]["server"]}
    run_self_taught(
        rollouts=Path(snakemake.input.rollouts),
        base=params.base,
        critic_folder=str(Path(critic[0]).parent) if critic else None,
        folder=Path(snakemake.output.run).parent,
        journal=Path(params.journal),
        settings=json.loads(params.settings) | transport,
        machine=params.machine,
        model=snakemake.wildcards.model,
        seed=params.seed,
    )
