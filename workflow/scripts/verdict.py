"""Run folders and whatever else a page needs in; the page as Markdown, its numbers and figures out."""

from projected_grpo.cells.config import Config
from projected_grpo.job import job
from projected_grpo.pages import registry
from projected_grpo.pages.context import Context
from projected_grpo.pages.page import write

with job(snakemake) as log:
    context = Context.read(snakemake.wildcards.page, Config.model_validate(snakemake.config))
    page = registry.load(snakemake.params.module).make(context)
    write(page, context.results)
    for line in page.log:
        log.info("%s", line)
