"""The smoke DAG, run once for all tests that need a finished pipeline."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

ROOT = Path(__file__).parents[1]
TARGETS = ["results/smoke/Q10.md"]


def clone(folder):
    """Copy the working tree's files (no results, no environment) to `folder`."""
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
    return folder


def snakemake(folder, *arguments, configs=("config/smoke.yaml",), check=True):
    """Run Snakemake in a copy, on the copy's own code; an error shows the logs of the jobs."""
    environ = {**os.environ, "PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "snakemake", "--configfile", *configs, "--cores", "2", *arguments]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True)
    if check and done.returncode:
        logs = "\n".join(f"{path}: {path.read_text()}" for path in (folder / "results").rglob("*.log"))
        raise AssertionError(done.stdout[-3000:] + done.stderr[-6000:] + logs[-3000:])
    return done


@pytest.fixture(scope="session")
def finished(tmp_path_factory, worker_id):
    """A copy of the repository with the smoke Q10 made: made once for a test run, a copy for each worker."""
    base = tmp_path_factory.getbasetemp()
    shared = base / "shared" if worker_id == "master" else base.parent / "shared"
    with FileLock(f"{shared}.lock"):
        if not (shared / "done").exists():
            snakemake(clone(shared / "tree"), *TARGETS)
            (shared / "done").touch()
    own = base / "a path with spaces"
    shutil.copytree(shared / "tree", own)  # tests edit files in it
    return own
