"""A finished run + pair sets and their bases -> how well each direction tells its hacks from its other rollouts."""

import json
from pathlib import Path

from projected_grpo.cells.run_settings import RunSettings
from projected_grpo.digests import expect
from projected_grpo.environment.problems import split_problems
from projected_grpo.environment.prompts import messages_for
from projected_grpo.job import job
from projected_grpo.method.basis import Basis
from projected_grpo.method.extraction import select_pairs
from projected_grpo.method.policy import load_policy
from projected_grpo.parquet import read_parquet, write_parquet
from projected_grpo.stages.detector import COLUMNS, alignment, concepts, measure
from projected_grpo.stages.kept import weights

with job(snakemake) as log:
    given, params, machine = snakemake.input, snakemake.params, snakemake.params.machine
    cell, asked, pool = (json.loads(text) for text in (params.cell, params.directions, params.pool))
    cell = RunSettings.model_validate(cell)
    policy = load_policy("antipasto", params.base, Path(given.svd), **machine)
    for own in asked:
        expect(own["pairs"], own["digest"])
    pairs = {own["name"]: select_pairs(Path(own["pairs"]), own["knobs"]) for own in asked}
    subject = asked[0]
    basis = Basis.load(Path(given.basis), machine["device"]).used(**subject["use"])
    problems, _ = split_problems(
        given.problems, pool["problems"], cell.setting.modes, pool["modes"], pool["names"]
    )
    prompts = {str(each.id): policy.tokenizer.encode_chat(messages_for(each)) for each in problems}
    rows = list(
        measure(
            policy,
            read_parquet(given.rollouts, COLUMNS),
            prompts,
            cell.training.max_new,
            cell.training.steps,
            lambda step: weights(Path(given.deltas), policy, step),
            concepts(policy, pairs, params.random, cell.seed),
            alignment(policy, basis),
        )
    )
    write_parquet(Path(snakemake.output[0]), rows)
    for row in rows:
        if row["direction"] == subject["name"]:
            log.info("%s", row)
