"""The bases that a question's rows use on one model -> how each lies to that of the exploits' own pairs."""

import json
from pathlib import Path

from projected_grpo.digests import expect
from projected_grpo.files import write_json
from projected_grpo.job import job
from projected_grpo.method.basis import Basis
from projected_grpo.method.extraction import select_pairs
from projected_grpo.method.policy import load_policy
from projected_grpo.stages.contrast import overlaps

with job(snakemake) as log:
    given, params, machine = snakemake.input, snakemake.params, snakemake.params.machine
    settings = json.loads(params.settings)
    bases = {Path(path).stem: Basis.load(Path(path), machine["device"]) for path in given.bases}
    reference = Path(given.bases[0]).stem
    pairs = {}
    for name, (path, digest) in settings["pairs"].items():
        if digest:
            expect(path, digest)
        pairs[name] = select_pairs(Path(path), json.loads(bases[name].metadata["knobs"]))
    policy = load_policy("antipasto", params.base, Path(given.svd), **machine)
    measured = overlaps(policy, reference, bases, pairs, settings["uses"])
    write_json(snakemake.output[0], {"reference": reference, "bases": measured})
    log.info("%s", measured)
