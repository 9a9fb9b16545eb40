"""Tables, figures, pages and runs in, the self-contained report out."""

from pathlib import Path

from projected_grpo.analysis.report import write_report
from projected_grpo.job import job

with job(snakemake):
    write_report(snakemake.config, Path(snakemake.output[0]))
