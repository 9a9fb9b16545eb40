"""Run folders of one setting on several sampling streams in, `aa.md` and `aa.parquet` out."""

from pathlib import Path

from projected_grpo.cells.config import Config
from projected_grpo.files import atomic, write_text
from projected_grpo.job import job
from projected_grpo.pages.questions import read_question
from projected_grpo.verdicts.aa import self_check, to_frame, to_markdown

with job(snakemake) as log:
    config = Config.model_validate(snakemake.config)
    check = self_check(read_question(snakemake.wildcards.question, config), Path(config.results))
    for cell, why in check.left_out.items():
        log.warning("left out: %s (%s)", cell, why)
    with atomic(snakemake.output.parquet) as path:
        to_frame(check).to_parquet(path, index=False)
    write_text(snakemake.output.md, to_markdown(check))
