"""The example on SmolLM2, from the wheel of the package index, two steps of it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from optional_packages import PACKAGES, need

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "trl_smollm2.py"


@pytest.mark.slow
@need("trl")
@need("gguf")
@pytest.mark.parametrize("adapter", ["lora", "antipasto"])
def test_smollm2_trains_with_the_levers_reward_and_the_projection(adapter, tmp_path):
    words = f"--steps 2 --prompts 1 --max-new 48 --adapter {adapter} --out".split()
    env = os.environ | {"PYTHONPATH": str(PACKAGES), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, EXAMPLE, *words, tmp_path / "out"],
        env=env,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    if "pip did not get it" in done.stderr:
        pytest.skip("no package index with the wheel of SmolLM2")
    assert done.returncode == 0, done.stderr[-3000:]
    table = [line.split() for line in done.stdout.splitlines() if re.match(r"step | +[12] ", line)]
    steps = [dict(zip(table[0], row, strict=False)) for row in table[1:]]
    assert [row["step"] for row in steps] == ["1", "2"]
    for row in steps:
        if row["cin"] != "-":  # a step in which no group has rewards that differ points nowhere
            assert 0 < float(row["cin"]) < 1 and float(row["cout"]) < 1e-3 and 0 < float(row["fired"]) <= 1
    assert (tmp_path / "out" / "adapter" / "adapter_model.safetensors").is_file()
