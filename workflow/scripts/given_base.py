"""A given model -> its canonical folder, held against transformers."""

from pathlib import Path

from projected_grpo.job import job
from projected_grpo.model.door import bring_base
from projected_grpo.model.wheel import Wheel

with job(snakemake) as log:
    params = snakemake.params
    source = params.base if isinstance(params.base, str) else Wheel(**params.base)
    found = bring_base(source, Path(snakemake.output.config).parent, params.dtype, params.whole)
    log.info("largest difference from transformers %.2g (should be below %.2g)", found.largest, found.bound)
