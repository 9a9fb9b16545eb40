"""What a finished run leaves behind, file by file; `run.json` stands last, so that its presence means all are there."""

from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import save_file

from projected_grpo.arms import Arm
from projected_grpo.files import atomic, write_json
from projected_grpo.method.adapter import Parameters
from projected_grpo.method.policy import Policy
from projected_grpo.parquet import write_parquet
from projected_grpo.records import circumstances, seal
from projected_grpo.training.checkpoint import Checkpoint
from projected_grpo.training.panels import COLUMNS as DEPLOYED
from projected_grpo.training.step import TEACHER


def write_adapter(path: Path, deployed: Parameters, beside: dict[str, Parameters]) -> None:
    """Write `{module}.delta_S`, which is what is deployed, and `{module}.{suffix}` of what an arm stores beside it."""
    tensors = {
        f"{name}.{suffix}": value.cpu().contiguous()
        for suffix, vectors in {"delta_S": deployed, **beside}.items()
        for name, value in vectors.items()
    }
    with atomic(path) as temporary:
        save_file(tensors, temporary)


def write_deltas(path: Path, thetas: Sequence[Parameters]) -> None:
    """Write delta_S after every step as `{module}.delta_S` `[steps, r]`, float32; a LoRA has none, and no tensors."""
    names = thetas[0] if thetas else ()
    tensors = {f"{name}.delta_S": torch.stack([theta[name] for theta in thetas]) for name in names}
    with atomic(path) as temporary:
        save_file(tensors, temporary)


def write_run(
    folder: Path,
    policy: Policy,
    arm: Arm,
    steps: list[dict],
    saved: Checkpoint,
    deployed: list[dict],
    record: dict,
) -> None:
    """Write the files of a run. steps: their rows; saved: holds all that was stored step by step; deployed: rollouts of
    the evaluation after the last one."""
    write_parquet(folder / "steps.parquet", steps)
    write_parquet(folder / "rollouts.parquet", saved.rows("rollouts"))
    write_parquet(folder / "teacher.parquet", saved.rows("teacher"), TEACHER)
    write_parquet(folder / "deployed.parquet", deployed, DEPLOYED)
    write_deltas(folder / "deltas.safetensors", saved.deltas())
    write_adapter(folder / "adapter.safetensors", arm.deployed(policy.theta), arm.stored())
    write_json(folder / "run.json", seal({**record, **circumstances()}))
