"""Run folders of one question in, `QN.md` and `QN.parquet` out."""

from pathlib import Path

from projected_grpo.cells.config import Config
from projected_grpo.files import atomic, write_text
from projected_grpo.job import job
from projected_grpo.pages.markdown import to_markdown
from projected_grpo.pages.questions import read_question
from projected_grpo.pages.table import make_table, to_frame

with job(snakemake) as log:
    config = Config.model_validate(snakemake.config)
    table = make_table(read_question(snakemake.wildcards.question, config), Path(config.results))
    for cell, why in table.left_out.items():
        log.warning("left out: %s (%s)", cell, why)
    with atomic(snakemake.output.parquet) as path:
        to_frame(table).to_parquet(path, index=False)
    write_text(snakemake.output.md, to_markdown(table))
