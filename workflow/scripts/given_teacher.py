"""A given PEFT adapter -> the canonical folder of the teacher, held against PEFT."""

from pathlib import Path

from projected_grpo.job import job
from projected_grpo.model.door import bring_teacher
from projected_grpo.portable import use_portable_kernels

with job(snakemake) as log:
    if snakemake.params.portable:
        use_portable_kernels()
    params, out = snakemake.params, Path(snakemake.output.config).parent
    found = bring_teacher(params.teacher, Path(params.base), out, params.dtype, params.whole)
    log.info("largest difference from PEFT %.2g (should be below %.2g)", found.largest, found.bound)
