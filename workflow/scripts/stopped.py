"""A finished run's delta_S after earlier steps, judged on the panels that it was judged on after the last."""

import json
from pathlib import Path

from projected_grpo.cells.deployed import Deployed
from projected_grpo.cells.run_settings import RunSettings
from projected_grpo.environment.grade import Grader
from projected_grpo.environment.problems import split_problems
from projected_grpo.job import job
from projected_grpo.method.policy import load_policy
from projected_grpo.parquet import write_parquet
from projected_grpo.stages.stopped import COLUMNS, stopped_rows
from projected_grpo.training.panels import make_panels

with job(snakemake) as log:
    given, params, machine = snakemake.input, snakemake.params, snakemake.params.machine
    cell = RunSettings.model_validate_json(params.cell)
    pool, deployed = json.loads(params.pool), Deployed.model_validate_json(params.deployed)
    policy = load_policy("antipasto", params.base, Path(given.svd), machine["dtype"], machine["device"])
    modes = cell.setting.modes
    _, held_out = split_problems(given.problems, pool["problems"], modes, pool["modes"], pool["names"])
    panels = make_panels(held_out, modes, deployed, pool["names"])
    deltas, samples = Path(given.deltas), deployed.samples
    with Grader(held_out, snakemake.threads, params.verdicts, machine["allow_weak_sandbox"]) as grader:
        rows = list(stopped_rows(policy, deltas, cell.training, panels, grader, samples, cell.seed))
    write_parquet(Path(snakemake.output[0]), rows, COLUMNS)
