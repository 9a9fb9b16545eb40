"""The grader's own check in, its exploit x mode matrix as an SVG file with its caption out."""

from pathlib import Path

from projected_grpo.files import write_json, write_text
from projected_grpo.job import job
from projected_grpo.pages.matrix import CAPTION, matrix
from projected_grpo.pages.style import to_svg

with job(snakemake):
    page, folder = Path(snakemake.input[0]), Path(snakemake.output[0])
    write_text(folder / "matrix.svg", to_svg(matrix(page)))
    write_json(folder / "captions.json", {"matrix": CAPTION})
