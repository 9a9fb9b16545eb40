"""What a finished run leaves behind: steps.parquet, rollouts.parquet, adapter.safetensors, run.json."""

import platform
from importlib.metadata import version
from pathlib import Path

import pandas as pd
from safetensors.torch import save_file

from projected_grpo.arms import Arm
from projected_grpo.files import atomic, write_json
from projected_grpo.method.adapter import Parameters
from projected_grpo.method.policy import Policy

PACKAGES = ("torch", "transformers", "peft", "numpy", "pandas", "snakemake")


def write_parquet(path: Path, rows: list[dict]) -> None:
    """Write rows as Parquet, atomically; a column of nulls alone is stored as float."""
    frame = pd.DataFrame(rows)
    empty = [name for name in frame if frame[name].isna().all()]
    with atomic(path) as temporary:
        frame.astype(dict.fromkeys(empty, "float64")).to_parquet(temporary, index=False)


def write_adapter(path: Path, theta: Parameters, beside: dict[str, Parameters]) -> None:
    """Write `{module}.delta_S`, and `{module}.{suffix}` of what an arm stores beside it, float32."""
    tensors = {
        f"{name}.{suffix}": value.cpu().contiguous()
        for suffix, vectors in {"delta_S": theta, **beside}.items()
        for name, value in vectors.items()
    }
    with atomic(path) as temporary:
        save_file(tensors, temporary)


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that numbers depend on."""
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}


def write_run(
    folder: Path, policy: Policy, arm: Arm, rows: list[dict], rollouts: list[dict], record: dict
) -> None:
    """Write the four files of a run; `run.json` last, so that its presence means all are there."""
    write_parquet(folder / "steps.parquet", rows)
    write_parquet(folder / "rollouts.parquet", rollouts)
    write_adapter(folder / "adapter.safetensors", policy.theta, arm.stored())
    write_json(folder / "run.json", {**record, "versions": versions()})
