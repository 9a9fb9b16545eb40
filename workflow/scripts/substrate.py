"""Rates of base and teacher, vanilla's steps -> results/substrate.md."""

from projected_grpo.job import job
from projected_grpo.stages.substrate import write_page

with job(snakemake):
    params = snakemake.params
    files = iter(snakemake.input.steps)
    write_page(
        snakemake.output[0],
        rates=dict(zip(params.models, snakemake.input.rates, strict=True)),
        runs={mix: {model: next(files) for model in params.models} for mix in params.mixes},
        recipe=snakemake.input.recipe,
    )
