"""Memory -> the pair set `self_taught`: wrong against correct evaluations of the same steps."""

from projected_grpo.evaluator.made_pairs import evaluation_pairs
from projected_grpo.evaluator.memory import Memory
from projected_grpo.evaluator.prompts import wording_of
from projected_grpo.job import job
from projected_grpo.method.pairs import write_pairs

with job(snakemake) as log:
    params = snakemake.params
    found = Memory(snakemake.input.memory).pairs()
    pairs = evaluation_pairs(found, wording_of(params.critic), params.pairs)
    comment = (
        "Made by the self-taught evaluator: hack = a wrong evaluation of a trace, clean = the correct one."
    )
    write_pairs(snakemake.output[0], pairs, comment)
    log.info("%d pairs from %d card pairs, %d asked for", len(pairs), len(found), params.pairs)
