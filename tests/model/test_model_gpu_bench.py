"""The GPU benchmark's logic on a tiny shape without a GPU: the step runs, the floor adds up."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from projected_grpo.model.architecture import Config

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import gpu

BENCHMARKS = Path(gpu.__file__).parent
SHAPE = Config(32, 16, 24, 2, 4, 2, 8, 1e-6, 1e4, True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_step_and_its_floor(dtype):
    torch.manual_seed(0)
    model = gpu.random_model(SHAPE, "cpu", dtype)
    load = gpu.workload(SHAPE, prompts=2, group=4, prompt=5, length=3, repeats=2)
    result = gpu.measure(model, gpu.random_adapter(model), load)
    assert result["tokens"] == {"prompt": 10, "generated": 24, "trained": 26, "predicting": 18}
    assert result["seconds"]["step"] > 0 and result["ratio_floor"] > 0
    assert {"generate", "backward", "project"} <= result["seconds"].keys()
    floor = gpu.floor(model, load, {"bytes_per_second": 1.0, "flops_per_second": 2.0})
    linear = 2 * (2 * 16 * 32 + 2 * 16 * 16 + 3 * 16 * 24)
    size = 2 if dtype == torch.bfloat16 else 4
    assert floor["generate"] == 3 * (linear + 32 * 16) * size
    assert floor["backward"] == (6 * linear * 26 + 4 * 32 * 16 * 18) / 2


@pytest.mark.parametrize("name", ["step", "grader", "gpu"])
def test_every_benchmark_starts(name):
    done = subprocess.run(
        [sys.executable, BENCHMARKS / f"{name}.py", "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0 and "usage:" in done.stdout, done.stderr
