"""A given model -> the same one, warmed on honest solutions of the problem family."""

from pathlib import Path

from projected_grpo.environment import families
from projected_grpo.hub import checkpoint_digest
from projected_grpo.job import job
from projected_grpo.model.recipes import WarmStart
from projected_grpo.model.sealed import Saved, key_of
from projected_grpo.model.warm import warm_start
from projected_grpo.portable import use_portable_kernels

with job(snakemake) as log:
    use_portable_kernels()
    params, family = snakemake.params, families.load(snakemake.params.family)
    recipe = WarmStart.model_validate_json(params.warm)
    mixture = family.Mixture.model_validate_json(params.mixture)
    texts = list(family.warm_examples(params.seed, recipe.examples, mixture, params.names))
    given, folder = Path(snakemake.input.given).parent, Path(snakemake.output.config).parent
    key = key_of(params.code, recipe, texts, checkpoint_digest(str(given)), snakemake.threads)
    saved = Saved(params.checkpoint, key)
    losses = warm_start(texts, given, folder, recipe, snakemake.threads, saved)
    saved.remove()
    log.info("%d steps, mean loss of the last 10: %.3f", len(losses), sum(losses[-10:]) / len(losses[-10:]))
