"""Runs, replays and compared bases of R7 in; its table, verdict and figures out."""

from pathlib import Path

from projected_grpo.cells.config import Config
from projected_grpo.files import read_json
from projected_grpo.job import job
from projected_grpo.pages.questions import read_question
from projected_grpo.pages.table import make_table
from projected_grpo.verdicts import probe_r7
from projected_grpo.verdicts.probe_figures import t4_strip
from projected_grpo.verdicts.probe_page import write_page
from projected_grpo.verdicts.probe_twins import read_sights
from projected_grpo.verdicts.twins import replay_folders, twins

with job(snakemake) as log:
    params, output = snakemake.params, snakemake.output
    config = Config.model_validate(snakemake.config)
    question = read_question(params.name, config)
    table = make_table(question, Path(params.results))
    probe = Path(params.results) / "probe"
    pairs = twins(question, config, "loss")
    sights = read_sights(replay_folders(question, config, "loss"), probe, params.steps)
    overlaps = {
        name: {int(seed): read_json(probe / path) for seed, path in by_seed.items()}
        for name, by_seed in params.overlaps.items()
    }
    figures = {
        "t4": (t4_strip({name: sight.t for name, sight in sights.items()}), "T4 of both losses' bases.")
    }
    sections = probe_r7.sections(table, pairs, sights, overlaps)
    write_page(table, sections, figures, config, Path(output.md), Path(output.parquet), Path(output.figures))
    log.info("%s", sections[1])
