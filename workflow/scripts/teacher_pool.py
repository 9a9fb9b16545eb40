"""Teacher -> graded rollouts, one file per problem."""

import json
from pathlib import Path

from projected_grpo.digests import file_digest
from projected_grpo.environment.grade import Grader
from projected_grpo.environment.problems import load_problems, with_modes
from projected_grpo.files import write_json
from projected_grpo.job import job
from projected_grpo.model.load import load
from projected_grpo.portable import use_portable_kernels
from projected_grpo.progress import Progress
from projected_grpo.training.teacher_pool import make_pool

with job(snakemake) as log:
    if snakemake.params.portable:
        use_portable_kernels()
    params, machine = snakemake.params, snakemake.params.machine
    pool = json.loads(params.pool)
    problems = load_problems(snakemake.input.problems)[: pool["problems"]]
    problems = with_modes(problems, params.modes, pool["modes"], pool["names"])
    teacher, tokenizer = load(params.teacher, machine["dtype"], machine["device"])
    folder, progress = Path(snakemake.output.manifest).parent, Progress(len(problems), "teacher pool")
    with Grader(problems, snakemake.threads, params.verdicts, machine["allow_weak_sandbox"]) as grader:
        make_pool(
            teacher,
            tokenizer,
            problems,
            grader,
            folder,
            pool["samples"],
            pool["max_new"],
            params.seed,
            progress.update,
        )
    log.info("%d problems x %d samples", len(problems), pool["samples"])
    write_json(
        snakemake.output.manifest, {Path(step).name: file_digest(step) for step in snakemake.output.steps}
    )
