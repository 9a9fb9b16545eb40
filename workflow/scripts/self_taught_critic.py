"""Rollouts + base model -> the uncalibrated critic, a PEFT folder."""

import json
from pathlib import Path

from projected_grpo.evaluator.jobs import make_critic
from projected_grpo.job import job

with job(snakemake):
    params = snakemake.params
    make_critic(
        rollouts=Path(snakemake.input.rollouts),
        base=params.base,
        folder=Path(snakemake.output[0]).parent,
        settings=json.loads(params.settings),
        seed=params.seed,
    )
