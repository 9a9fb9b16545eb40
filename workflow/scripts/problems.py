"""Generated problems of a replication -> JSONL of LeetCode-like rows."""

from projected_grpo.environment.family import make_problems
from projected_grpo.files import write_jsonl
from projected_grpo.job import job

with job(snakemake):
    params = snakemake.params
    write_jsonl(snakemake.output[0], make_problems(params.seed, params.problems, params.modes))
