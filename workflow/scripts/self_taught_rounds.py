"""Rollouts + critic -> cards, the pair set `self_taught`, and the critic's evaluations before and after."""

import json
from pathlib import Path

from projected_grpo.job import job
from projected_grpo.self_taught.stages import run_self_taught

with job(snakemake):
    params, critic = snakemake.params, snakemake.input.critic
    run_self_taught(
        rollouts=Path(snakemake.input.rollouts),
        base=params.base,
        critic_folder=str(Path(critic[0]).parent) if critic else None,
        folder=Path(snakemake.output.run).parent,
        journal=Path(params.journal),
        settings=json.loads(params.settings),
        machine=params.machine,
        model=snakemake.wildcards.model,
        seed=params.seed,
    )
