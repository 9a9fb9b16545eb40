"""Run folders of one question in, its figures as SVG files and their captions out."""

from pathlib import Path

from projected_grpo.cells.config import Config
from projected_grpo.files import write_json, write_text
from projected_grpo.job import job
from projected_grpo.pages.figures import of_question
from projected_grpo.pages.questions import read_question
from projected_grpo.pages.style import to_svg
from projected_grpo.pages.table import make_table

with job(snakemake):
    config = Config.model_validate(snakemake.config)
    table = make_table(read_question(snakemake.wildcards.question, config), Path(config.results))
    folder = Path(snakemake.output[0])
    captions = {}
    for name, (drawing, caption) in of_question(table, config).items():
        write_text(folder / f"{name}.svg", to_svg(drawing))
        captions[name] = caption
    write_json(folder / "captions.json", captions)
