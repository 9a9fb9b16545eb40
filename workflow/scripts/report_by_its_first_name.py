"""The report of a config with a name of its own, under the name that every report can be asked for by."""

import shutil

from projected_grpo.job import job

with job(snakemake):
    shutil.copyfile(snakemake.input[0], snakemake.output[0])
