"""profiles/slurm against a real Slurm of one node with one fake GPU (tests/helpers/slurm/node.sh)."""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from workspace import clone

HERE = Path(__file__).resolve().parents[2]
NODE = HERE / "tests" / "helpers" / "slurm" / "node.sh"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    if os.geteuid():
        pytest.skip("starting a cluster needs root")
    if missing := [name for name in ("munged", "slurmctld", "slurmd", "sbatch") if not shutil.which(name)]:
        pytest.skip(f"no {', '.join(missing)} here (Debian: slurm-wlm, munge)")
    folder = tmp_path_factory.mktemp("slurm")
    try:
        started = subprocess.run([NODE, "start", folder], stderr=subprocess.PIPE, text=True, timeout=60)
        if started.returncode == 3:
            pytest.skip(started.stderr.strip())
        assert started.returncode == 0, started.stderr
        yield folder
    finally:
        subprocess.run([NODE, "stop", folder], check=True, timeout=60)


def gpu_jobs():
    """(start, end) of the cluster's ended jobs that had the GPU."""
    listed = subprocess.run(
        ["scontrol", "show", "job", "-o"], capture_output=True, text=True, check=True
    ).stdout
    jobs = [line for line in listed.splitlines() if re.search(r"TresPerJob=\S*gpu", line)]
    return [re.search(r"StartTime=(\S+) EndTime=(\S+)", line).groups() for line in jobs]


def submit(folder, *arguments):
    pace = ["--slurm-init-seconds-before-status-checks", "1", "--seconds-between-status-checks", "1"]
    profile = ["--workflow-profile", HERE / "profiles" / "slurm"]
    command = [sys.executable, "-m", "snakemake", *profile, *pace, *arguments]
    environ = {**os.environ, "PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stderr


def test_gpu_jobs_queue_for_the_gpu_and_a_retry_gets_more_memory(cluster, tmp_path):
    (tmp_path / "Snakefile").write_text(
        """
rule all:
    input: expand("out/{i}", i=range(3)), "hungry"
rule cell:
    output: "out/{i}"
    threads: 1
    resources: gpu=1
    script: "cell.py"
rule hungry:
    output: "hungry"
    script: "hungry.py"
"""
    )
    (tmp_path / "cell.py").write_text(
        """
import json, os, time
start = time.time()
time.sleep(1)
row = [start, time.time(), os.environ["CUDA_VISIBLE_DEVICES"], os.environ["SLURM_CPUS_PER_TASK"]]
json.dump(row, open(snakemake.output[0], "w"))
"""
    )
    (tmp_path / "hungry.py").write_text(
        """
memory = snakemake.resources.mem_mb
assert memory >= 8000, "as if out of memory"
open(snakemake.output[0], "w").write(str(memory))
"""
    )
    submit(tmp_path)
    rows = sorted(json.loads((tmp_path / "out" / str(i)).read_text()) for i in range(3))
    assert all(earlier[1] <= later[0] for earlier, later in itertools.pairwise(rows))
    assert {tuple(row[2:]) for row in rows} == {("0", "1")}
    assert (tmp_path / "hungry").read_text() == "8000"  # the second attempt


TWO_ROWS = """
Q10:
  title: Through a cluster
  asks: Does every kind of job find what the one before it made?
  baseline: vanilla
  rows: [{ name: vanilla }, { name: own_mode, arm: erase, basis: own_mode }]
"""


@pytest.mark.slow
def test_a_question_through_the_cluster(cluster, tmp_path):
    clone(tmp_path)
    (tmp_path / "small.yaml").write_text("questions: two.yaml\nsmall: { base: 60, teacher: 20 }\n")
    (tmp_path / "two.yaml").write_text(TWO_ROWS)
    before = len(gpu_jobs())
    rules = ["base", "teacher", "teacher_pool", "svd", "basis", "grpo"]
    words = ["--configfile", "config/smoke.yaml", "small.yaml"]
    words += ["--set-resources", *[f"{rule}:gpu=1" for rule in rules]]
    # A job that wants both cores of a small node can wait for ever behind the others.
    words += ["--set-threads", "grader_diagonal=1"]
    submit(tmp_path, *words, "--", "results/smoke/Q10.md")
    assert "| own_mode |" in (tmp_path / "results/smoke/Q10.md").read_text()
    spans = sorted(gpu_jobs())
    assert len(spans) - before == 7  # base, teacher, pool, SVD, a basis, two runs
    assert all(earlier[1] <= later[0] for earlier, later in itertools.pairwise(spans))
