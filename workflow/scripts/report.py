"""Pages, figures and runs in, the self-contained report out."""

from pathlib import Path

from projected_grpo.job import job
from projected_grpo.pages.report import build, write_report
from projected_grpo.verdicts.given import Given

with job(snakemake):
    given, out = Given.read("", snakemake.config), Path(snakemake.output[0])
    page = build(given.results, given.config["model"]["name"], given.questions, snakemake.params.pages, out)
    write_report(page, out)
