"""A base and problems of its own -> a short run without levers: its steps, and the axes of its updates."""

from pathlib import Path

from projected_grpo.cells.hyper import Training
from projected_grpo.environment.grade import Grader
from projected_grpo.job import job
from projected_grpo.method.extraction import model_hash
from projected_grpo.method.policy import load_policy
from projected_grpo.parquet import write_parquet
from projected_grpo.stages.clean_run import clean_run, other_problems, train_clean, update_axes
from projected_grpo.training.job import step_line

with job(snakemake) as log:
    given, out, params, machine = (
        snakemake.input,
        snakemake.output,
        snakemake.params,
        snakemake.params.machine,
    )
    training = Training.model_validate_json(params.training)
    problems = other_problems(Path(given.problems), params.first, params.problems, training.prompts)
    policy = load_policy("antipasto", params.base, Path(given.svd), machine["dtype"], machine["device"])

    def report(row: dict) -> None:
        log.info("%s", step_line(row, training.steps))

    with Grader(problems, snakemake.threads, params.verdicts, machine["allow_weak_sandbox"]) as grader:
        rows, updates = train_clean(clean_run(policy, problems, grader, training, params.seed), report)
    axes = update_axes(
        updates, {"seed": str(params.seed), "model_hash": model_hash(policy), "code": params.code}
    )
    write_parquet(Path(out.steps), rows)
    axes.save(Path(out.axes))
    if not axes.V:
        log.warning("no group had rewards that differ: the run never moved, and nothing is trusted")
    log.info("%d problems, %d modules moved", len(problems), len(axes.V))
