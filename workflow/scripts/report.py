"""Tables, figures, pages and runs in, the self-contained report out."""

from pathlib import Path

from projected_grpo.cells.config import Config
from projected_grpo.job import job
from projected_grpo.pages.report import write_report

with job(snakemake):
    write_report(Config.model_validate(snakemake.config), Path(snakemake.output[0]))
