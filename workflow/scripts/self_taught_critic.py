"""Rollouts + base model -> the uncalibrated critic, a PEFT folder."""

import json
from pathlib import Path

from projected_grpo.job import job
from projected_grpo.self_taught.stages import make_critic

with job(snakemake):
    params = snakemake.params
    make_critic(
        rollouts=Path(snakemake.input.rollouts),
        base=params.base,
        folder=Path(snakemake.output[0]).parent,
        settings=json.loads(params.settings),
        seed=params.seed,
    )
