"""A finished run + its frozen basis -> how much of it a fresh basis still shares at the run's end."""

import json
from pathlib import Path

from projected_grpo.files import write_json
from projected_grpo.job import job
from projected_grpo.method.basis import Basis
from projected_grpo.method.extraction import select_pairs
from projected_grpo.method.policy import load_policy
from projected_grpo.stages.contrast import drift
from projected_grpo.stages.kept import read_adapter

with job(snakemake) as log:
    given, params, machine = snakemake.input, snakemake.params, snakemake.params.machine
    use = json.loads(params.use)
    frozen = Basis.load(Path(given.basis), machine["device"]).used(**use)
    knobs = json.loads(frozen.metadata["knobs"])
    pairs = select_pairs(Path(params.pairs), knobs)
    policy = load_policy(knobs["adapter"], params.base, Path(given.svd), **machine)
    policy.theta = read_adapter(Path(given.adapter), policy)
    share = drift(policy, pairs, knobs, use, frozen, params.seed)
    write_json(snakemake.output[0], {"overlap_fresh": share})
    log.info("overlap of the frozen V with a fresh one: %.3f", share)
