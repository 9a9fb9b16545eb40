"""Grade every exploit under every mode; fail unless the matrix is diagonal."""

from projected_grpo.environment.diagonal import check_diagonal, matrix, to_markdown
from projected_grpo.files import write_text
from projected_grpo.job import job

with job(snakemake):
    found, level = matrix(allow_weak=snakemake.params.allow_weak_sandbox)
    check_diagonal(found)
    write_text(snakemake.output[0], to_markdown(found, level))
