"""Runs of R5 in; its table, verdict and figures out."""

from pathlib import Path

from projected_grpo.cells.config import Config
from projected_grpo.job import job
from projected_grpo.pages.questions import read_question
from projected_grpo.pages.table import make_table
from projected_grpo.training.ratio import RATIO_EDGES
from projected_grpo.verdicts import probe_r5
from projected_grpo.verdicts.probe_figures import over_steps, ratio_heatmap
from projected_grpo.verdicts.probe_page import write_page

with job(snakemake) as log:
    params, output = snakemake.params, snakemake.output
    config = Config.model_validate(snakemake.config)
    table = make_table(read_question(params.name, config), Path(params.results))
    found = {line.name: probe_r5.ratios(table, line) for line in table.lines}
    found = {name: frame for name, frame in found.items() if frame is not None}
    figures = {
        "ratios": (
            ratio_heatmap(found, RATIO_EDGES) if found else None,
            "Ratio student / teacher on the teacher's tokens per step, mean over seeds (clip bounds: 0.8 and 1.2).",
        ),
        "clip": (
            over_steps(probe_r5.clip_series(table)),
            "Teacher's tokens beyond the clip bounds per step, mean over seeds; at most these lose their gradient.",
        ),
    }
    write_page(
        table, probe_r5.sections(table), figures, config,
        Path(output.md), Path(output.parquet), Path(output.figures),
    )  # fmt: skip
    for sentence in probe_r5.verdict(table):
        log.info("%s", sentence)
