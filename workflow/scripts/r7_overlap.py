"""An NLL basis and a contrastive GRPO basis of one pair set -> how far they differ, and why."""

import json
from pathlib import Path

from projected_grpo.files import write_json
from projected_grpo.job import job
from projected_grpo.method.basis import Basis
from projected_grpo.method.extraction import select_pairs
from projected_grpo.method.policy import load_policy
from projected_grpo.stages.contrast import compare_losses

with job(snakemake) as log:
    given, params, machine = snakemake.input, snakemake.params, snakemake.params.machine
    use = json.loads(params.use)
    nll, grpo = (Basis.load(Path(path), machine["device"]).used(**use) for path in (given.nll, given.grpo))
    knobs = json.loads(nll.metadata["knobs"])
    pairs = select_pairs(Path(params.pairs), knobs)
    policy = load_policy(knobs["adapter"], params.base, Path(given.svd), **machine)
    measured = compare_losses(policy, pairs, knobs, use, nll, grpo)
    write_json(snakemake.output[0], measured)
    log.info("%s", measured)
