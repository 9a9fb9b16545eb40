"""Grade every exploit under every mode; fail unless the matrix is diagonal."""

from projected_grpo.environment.diagonal import check_diagonal, matrix
from projected_grpo.files import write_json
from projected_grpo.job import job

with job(snakemake):
    params = snakemake.params
    found, level = matrix(params.family, params.names, params.allow_weak_sandbox)
    check_diagonal(found)
    write_json(snakemake.output[0], {"sandbox": level, "counts": found})
