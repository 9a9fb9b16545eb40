"""Rollouts -> the pair set `self_taught_code`: flagged against unflagged code of the same problems."""

from projected_grpo.evaluator.made_pairs import code_pairs
from projected_grpo.job import job
from projected_grpo.method.pairs import write_pairs

with job(snakemake) as log:
    pairs = code_pairs(snakemake.input[0], snakemake.params.pairs)
    comment = (
        "Made from rollouts: hack = code that the weak detector flags, clean = unflagged code, same problem."
    )
    write_pairs(snakemake.output[0], pairs, comment)
    log.info("%d pairs, %d asked for", len(pairs), snakemake.params.pairs)
