"""What a finished run leaves behind: steps.parquet, rollouts.parquet, adapter.safetensors, run.json."""

from pathlib import Path

import pandas as pd
from safetensors.torch import save_file

from projected_grpo.arms import Arm
from projected_grpo.files import atomic, write_json
from projected_grpo.method.adapter import Parameters
from projected_grpo.method.policy import Policy
from projected_grpo.records import circumstances, seal


def write_parquet(path: Path, rows: list[dict]) -> None:
    """Write rows as Parquet, atomically; a column of nulls alone is stored as float."""
    frame = pd.DataFrame(rows)
    empty = [name for name in frame if frame[name].isna().all()]
    with atomic(path) as temporary:
        frame.astype(dict.fromkeys(empty, "float64")).to_parquet(temporary, index=False)


def write_adapter(path: Path, deployed: Parameters, beside: dict[str, Parameters]) -> None:
    """Write `{module}.delta_S`, which is what is deployed, and `{module}.{suffix}` of what an arm stores beside it."""
    tensors = {
        f"{name}.{suffix}": value.cpu().contiguous()
        for suffix, vectors in {"delta_S": deployed, **beside}.items()
        for name, value in vectors.items()
    }
    with atomic(path) as temporary:
        save_file(tensors, temporary)


def write_run(
    folder: Path, policy: Policy, arm: Arm, rows: list[dict], rollouts: list[dict], record: dict
) -> None:
    """Write the four files of a run; `run.json` last, so that its presence means all are there."""
    write_parquet(folder / "steps.parquet", rows)
    write_parquet(folder / "rollouts.parquet", rollouts)
    write_adapter(folder / "adapter.safetensors", arm.deployed(policy.theta), arm.stored())
    write_json(folder / "run.json", seal({**record, **circumstances()}))
