"""Run folders and whatever else a page needs in; the page as Markdown and JSON, its numbers and figures out."""

from projected_grpo.cells.config import Config
from projected_grpo.job import job
from projected_grpo.verdicts import registry
from projected_grpo.verdicts.context import Context
from projected_grpo.verdicts.verdict import write

with job(snakemake) as log:
    context = Context.read(snakemake.wildcards.page, Config.model_validate(snakemake.config))
    verdict = registry.load(snakemake.params.module).make(context)
    write(verdict, context.results, context.config.banner)
    for line in verdict.log:
        log.info("%s", line)
