"""SVD of every adapted Linear of a model -> one safetensors file."""

from pathlib import Path

from projected_grpo.job import job
from projected_grpo.method.adapter import save_svd
from projected_grpo.model.load import load

with job(snakemake) as log:
    model, _ = load(snakemake.params.base, **snakemake.params.machine)
    weights = {name: model.weights[f"{name}.weight"] for name in model.linears}
    save_svd(weights.__getitem__, {n: tuple(W.shape) for n, W in weights.items()}, Path(snakemake.output[0]))
    log.info("%d modules", len(weights))
