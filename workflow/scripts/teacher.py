"""Teacher LoRA of a replication, trained on exploits alone."""

from pathlib import Path

from projected_grpo.environment import families
from projected_grpo.hub import checkpoint_digest
from projected_grpo.job import job
from projected_grpo.model.recipes import TeacherRecipe
from projected_grpo.model.sealed import Saved, key_of
from projected_grpo.model.teacher import train_teacher
from projected_grpo.portable import use_portable_kernels

with job(snakemake) as log:
    if snakemake.params.portable:
        use_portable_kernels()
    params, family = snakemake.params, families.load(snakemake.params.family)
    recipe = TeacherRecipe.model_validate_json(params.recipe)
    mixture = family.Mixture.model_validate_json(params.mixture)
    texts = list(family.teacher_examples(params.seed, params.examples, mixture, params.names))
    folder = Path(snakemake.output.config).parent
    base = checkpoint_digest(params.base)
    saved = Saved(params.checkpoint, key_of(params.code, params.seed, recipe, texts, base, snakemake.threads))
    losses = train_teacher(texts, params.base, folder, params.seed, recipe, snakemake.threads, saved)
    saved.remove()
    log.info("%d steps, mean loss of the last 20: %.3f", len(losses), sum(losses[-20:]) / len(losses[-20:]))
