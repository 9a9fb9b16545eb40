"""profiles/slurm against a real Slurm of one node with one fake GPU (tests/slurm/node.sh)."""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import clone

HERE = Path(__file__).resolve().parents[1]
NODE = HERE / "tests" / "slurm" / "node.sh"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    if os.geteuid():
        pytest.skip("starting a cluster needs root")
    if missing := [name for name in ("munged", "slurmctld", "slurmd", "sbatch") if not shutil.which(name)]:
        pytest.skip(f"no {', '.join(missing)} here (Debian: slurm-wlm, munge)")
    if Path("/etc/slurm/slurm.conf").exists():
        pytest.skip("this machine belongs to a cluster already (/etc/slurm/slurm.conf)")
    folder = tmp_path_factory.mktemp("slurm")
    try:
        subprocess.run([NODE, "start", folder], check=True, timeout=60)
        yield folder
    finally:
        subprocess.run([NODE, "stop", folder], check=True, timeout=60)


def gpu_jobs():
    """(start, end) of the cluster's ended jobs that had the GPU."""
    clone(tmp_path)
    before = len(gpu_jobs())
    rules = ["base", "teacher", "teacher_pool", "svd", "basis", "grpo"]
    submit(
        tmp_path,
        "--configfile",
        "config/smoke.yaml",
        "--set-resources",
        *[f"{rule}:gpu=1" for rule in rules],
        "--",
        "results/smoke/Q10.md",
    )
    assert "| own_mode |" in (tmp_path / "results/smoke/Q10.md").read_text()
    spans = sorted(gpu_jobs())
    assert len(spans) - before >= 20
    assert all(earlier[1] <= later[0] for earlier, later in itertools.pairwise(spans))
