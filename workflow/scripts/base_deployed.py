"""The base before any training on the panels that runs are judged on."""

import json
from pathlib import Path

from projected_grpo.cells.deployed import Deployed
from projected_grpo.environment.grade import Grader
from projected_grpo.environment.problems import split_problems
from projected_grpo.job import job
from projected_grpo.model.load import load
from projected_grpo.parquet import write_parquet
from projected_grpo.training.panels import COLUMNS, deployed_rows, make_panels

with job(snakemake) as log:
    params, machine = snakemake.params, snakemake.params.machine
    pool, deployed = json.loads(params.pool), Deployed.model_validate_json(params.deployed)
    _, held_out = split_problems(snakemake.input.problems, pool["problems"], pool["modes"], pool["modes"])
    panels = make_panels(held_out, pool["modes"], deployed, pool["names"])
    model, tokenizer = load(params.base, machine["dtype"], machine["device"])
    with Grader(held_out, snakemake.threads, params.verdicts, machine["allow_weak_sandbox"]) as grader:
        rows = deployed_rows(model, tokenizer, panels, grader, deployed.samples, params.max_new, params.seed)
    write_parquet(Path(snakemake.output[0]), rows, COLUMNS)
