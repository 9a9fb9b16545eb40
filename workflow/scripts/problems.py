"""Generated problems of a replication -> JSONL of LeetCode-like rows."""

from projected_grpo.environment import families
from projected_grpo.files import write_jsonl
from projected_grpo.job import job

with job(snakemake):
    params = snakemake.params
    family = families.load(params.family)
    mixture = family.Mixture.model_validate_json(params.mixture)
    rows = family.problems(params.seed, params.first + params.problems, params.modes, mixture)
    before = [row["prompt"] for row in rows[: params.first]]
    write_jsonl(snakemake.output[0], (row for row in rows[params.first :] if row["prompt"] not in before))
