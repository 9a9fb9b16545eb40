"""Teacher LoRA of a replication, trained on exploits alone."""

from pathlib import Path

from projected_grpo.environment.corpus import teacher_examples
from projected_grpo.job import job
from projected_grpo.model.teacher import TeacherRecipe, train_teacher

with job(snakemake) as log:
    params, recipe = snakemake.params, TeacherRecipe()
    texts = list(teacher_examples(params.seed, params.examples))
    folder = Path(snakemake.output.config).parent
    losses = train_teacher(texts, params.base, folder, params.seed, recipe, snakemake.threads)
    log.info("%d steps, mean loss of the last 20: %.3f", len(losses), sum(losses[-20:]) / len(losses[-20:]))
