"""Pages, figures and runs in, the self-contained report out."""

from pathlib import Path

from projected_grpo.cells.config import Config
from projected_grpo.job import job
from projected_grpo.pages.context import Context
from projected_grpo.pages.report import build, write_report

with job(snakemake):
    context, out = Context.read("", Config.model_validate(snakemake.config)), Path(snakemake.output[0])
    write_report(build(context.config, context.questions, snakemake.params.pages, out), out)
