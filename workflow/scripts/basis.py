"""Pair set + base model -> hack basis."""

import json
from pathlib import Path

from projected_grpo.job import job
from projected_grpo.method.extraction import extract_basis, model_hash, select_pairs
from projected_grpo.method.pairs import load_pairs
from projected_grpo.method.policy import load_policy

with job(snakemake) as log:
    params = snakemake.params
    knobs = json.loads(params.knobs)
    if snakemake.input.pairs:  # written by the pipeline: as many as it found
        knobs["n_pairs"] = min(knobs["n_pairs"], len(load_pairs(params.pairs)))
    pairs = select_pairs(Path(params.pairs), knobs)
    policy = load_policy(knobs["adapter"], params.base, Path(snakemake.input.svd[0]), **params.machine)
    basis = extract_basis(policy, pairs, knobs, params.seed)
    basis.metadata.update(
        knobs=json.dumps(knobs, sort_keys=True), model_hash=model_hash(policy), code=params.code
    )
    basis.save(Path(snakemake.output[0]))
    log.info("%s: %d pairs, %d modules, knobs %s", pairs.name, len(pairs), len(basis.V), knobs)
