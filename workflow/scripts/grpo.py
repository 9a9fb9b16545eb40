"""One GRPO run: settings, base, pool and basis in; steps, rollouts, adapter and run.json out."""

import json
from pathlib import Path

from projected_grpo.cells.deployed import Deployed
from projected_grpo.job import job
from projected_grpo.training.job import CriticFiles, Machine, Sources, run_cell

with job(snakemake):
    params, given = snakemake.params, snakemake.input
    folder = Path(snakemake.output.run).parent
    cell = snakemake.wildcards.cell
    # No param: switching the tracker on is no reason to train a finished cell again.
    record = {"cell": cell, "model": params.model, "code": params.code, "log": snakemake.log[0]}
    if arms := snakemake.config["arms"]:  # who reads the run later must find its arm, too
        record["arms"] = arms
    events = Path(snakemake.config["results"], "tensorboard", cell)
    run_cell(
        params=params.cell,
        sources=Sources(
            base=params.base,
            svd=Path(given.svd),
            problems=Path(given.problems),
            pool=Path(given.pool).parent,
            basis=Path(given.basis[0]) if given.basis else None,
            pairs=Path(params.pairs) if params.pairs else None,
            critic=CriticFiles(Path(given.critic[0]).parent, params.critic_tokens) if given.critic else None,
        ),
        machine=Machine(threads=snakemake.threads, verdicts=Path(params.verdicts), **params.machine),
        pool_config=json.loads(params.pool),
        deployed=Deployed.model_validate_json(params.deployed),
        folder=folder,
        checkpoint=Path(params.checkpoint),
        record=record,
        events=events if snakemake.config["tracker"] == "tensorboard" else None,
    )
