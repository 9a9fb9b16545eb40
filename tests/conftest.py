"""The smoke DAG, run once for all tests that need a finished pipeline."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TARGETS = ["results/smoke/Q10.md"]


def snakemake(folder, *arguments, check=True):
    environ = {**os.environ, "PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1"}
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "--configfile",
        "config/smoke.yaml",
        "--cores",
        "2",
        *arguments,
    ]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True)
    if check and done.returncode:
        logs = "\n".join(
            f"{path}: {path.read_text()}" for path in (folder / "results/smoke/logs").rglob("*.log")
        )
        raise AssertionError(done.stdout[-3000:] + done.stderr[-6000:] + logs[-3000:])
    return done


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A copy of the repository with the smoke Q10 made."""
    folder = tmp_path_factory.mktemp("dag") / "a path with spaces"
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    snakemake(folder, *TARGETS)
    return folder
