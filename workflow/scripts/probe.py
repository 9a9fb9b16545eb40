"""Teacher pool + student + basis -> one replay, a file a step."""

import json
from pathlib import Path

from projected_grpo.errors import UserError
from projected_grpo.files import write_jsonl
from projected_grpo.job import job
from projected_grpo.method.basis import Basis
from projected_grpo.method.policy import load_policy
from projected_grpo.stages.replay import Training, probe_problems, replay

with job(snakemake) as log:
    given, machine = snakemake.input, snakemake.params.machine
    settings = json.loads(snakemake.params.settings)
    policy = load_policy(settings["adapter"], snakemake.params.base, Path(given.svd), **machine)
    pool = Path(given.pool).parent
    problems = probe_problems(pool, policy.tokenizer, settings["mode"], settings["problems"])
    if len(problems) != len(snakemake.output):
        raise UserError(
            f"{pool}: {len(problems)} problems with the hint of {settings['mode']}, "
            f"expected {len(snakemake.output)}"
        )
    basis = Basis.load(Path(given.basis), machine["device"]).used(**settings["use"])
    steps = replay(policy, problems, basis, settings["arm"], Training(**settings["training"]))
    for path, rows in zip(snakemake.output, steps, strict=True):
        write_jsonl(path, rows)
        step = rows[-1]
        log.info(
            "step %d/%d: loss %.3f cos %s cin %.3f (null %.3f) cout %.3f (projected: 0) "
            "cout_update %.3f fired %.2f",
            step["step"], len(problems), step["loss"], step["mean_cos_S"], step["mean_cos_in"], step["cos_null"],
            step["mean_cos_out"], step["cout_update"], step["fired"],
        )  # fmt: skip
