"""Base and teacher of a replication -> solve and hack rates per mode, on training and held-out problems."""

import json

from projected_grpo.environment.grade import Grader
from projected_grpo.environment.problems import load_problems, with_modes
from projected_grpo.files import write_json
from projected_grpo.job import job
from projected_grpo.model.load import load
from projected_grpo.stages.substrate import measure

with job(snakemake) as log:
    params, machine = snakemake.params, snakemake.params.machine
    pool = json.loads(params.pool)
    n = pool["problems"]
    problems = load_problems(snakemake.input.problems)[: 2 * n]
    problems = with_modes(problems, pool["modes"], pool["modes"], pool["names"])
    base, tokenizer = load(params.base, machine["dtype"], machine["device"])
    teacher, _ = load(params.teacher, machine["dtype"], machine["device"])
    weak = machine["allow_weak_sandbox"]
    with Grader(problems, snakemake.threads, params.verdicts, weak) as grader:
        rates = measure(
            {"base": base, "teacher": teacher},
            tokenizer,
            {"training": problems[:n], "held_out": problems[n:]},
            grader,
            pool["samples"],
            pool["max_new"],
            params.seed,
        )
    write_json(snakemake.output[0], rates)
    log.info("%s", json.dumps({who: rates[who]["training"]["all"] for who in rates}))
