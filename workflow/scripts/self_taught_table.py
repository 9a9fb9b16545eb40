"""Evaluations, rollouts and cards of all replications -> `self_taught.md`, `.parquet` and `cards.parquet`."""

import pandas as pd

from projected_grpo.evaluator.oracle import errors, oracle_scores
from projected_grpo.files import atomic, read_json, write_text
from projected_grpo.job import job
from projected_grpo.parquet import read_parquet
from projected_grpo.verdicts.critic import make_frame, to_markdown

with job(snakemake) as log:
    given = snakemake.input
    runs = [read_json(path) for path in given.runs]
    measured = {
        run["seed"]: errors(read_parquet(evaluations), oracle_scores(rollouts))
        for run, evaluations, rollouts in zip(runs, given.evaluations, given.rollouts, strict=True)
    }
    cards = pd.concat([read_parquet(path) for path in given.cards], ignore_index=True)
    frame = make_frame(measured)
    with atomic(snakemake.output.cards) as path:
        cards.to_parquet(path, index=False)
    with atomic(snakemake.output.parquet) as path:
        frame.to_parquet(path, index=False)
    write_text(snakemake.output.md, to_markdown(frame, runs, cards))
    log.info("%d replications, %d cards", len(runs), len(cards))
