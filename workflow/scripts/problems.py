"""Generated problems of a replication -> JSONL of LeetCode-like rows."""

from projected_grpo.environment import families
from projected_grpo.files import write_jsonl
from projected_grpo.job import job

with job(snakemake):
    params = snakemake.params
    family = families.load(params.family)
    mixture = family.Mixture.model_validate_json(params.mixture)
    write_jsonl(snakemake.output[0], family.problems(params.seed, params.problems, params.modes, mixture))
