"""Runs, replays and drifts of R6 in; its table, verdict and figures out."""

from pathlib import Path

from projected_grpo.cells.config import Config
from projected_grpo.files import read_json
from projected_grpo.job import job
from projected_grpo.pages.questions import read_question
from projected_grpo.pages.table import make_table
from projected_grpo.verdicts import probe_r6
from projected_grpo.verdicts.probe_figures import over_steps, t4_strip
from projected_grpo.verdicts.probe_page import write_page
from projected_grpo.verdicts.probe_twins import read_sights
from projected_grpo.verdicts.twins import replay_folders, twins

with job(snakemake) as log:
    params, output = snakemake.params, snakemake.output
    config = Config.model_validate(snakemake.config)
    question = read_question(params.name, config)
    table = make_table(question, Path(params.results))
    probe = Path(params.results) / "probe"
    pairs = twins(question, config, "adapter")
    sights = read_sights(replay_folders(question, config, "adapter"), probe, params.steps)
    drifts = {Path(path).stem: read_json(path) for path in snakemake.input.drifts}
    figures = {
        "t4": (t4_strip({name: sight.t for name, sight in sights.items()}), "T4 in SVD and in LoRA space."),
        "drift": (
            over_steps(probe_r6.drift_series(table)),
            "How the basis ages: hack-ward share of the gradient along a frozen V; in refreshing runs, the overlap of "
            "each new V with the one that it replaces (a frozen V's own overlap with a fresh one: last step only).",
        ),
    }
    sections = probe_r6.sections(table, pairs, sights, drifts)
    write_page(table, sections, figures, config, Path(output.md), Path(output.parquet), Path(output.figures))
    log.info("%s", sections[1])
