"""GPU jobs of one machine: a device each, no two on one, freed however a process ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from projected_grpo import devices
from projected_grpo.errors import UserError

JOB = """
import json, os, sys, time
from projected_grpo.devices import claim
gpu = claim(poll=0.02)
assert claim() == gpu == os.environ["CUDA_VISIBLE_DEVICES"]
start = time.time()
time.sleep(float(sys.argv[1]))
print(json.dumps([gpu, start, time.time()]), flush=True)
"""


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with three fake GPUs."""
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\nprintf 'GPU-a\\nGPU-b\\nGPU-c\\n'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return tool


def start(seconds, **environ):
    return subprocess.Popen(
        [sys.executable, "-c", JOB, str(seconds)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environ},
    )


def overlaps(spans):
    return [
        (a, b) for i, a in enumerate(spans) for b in spans[:i] if a[0] == b[0] and a[1] < b[2] and b[1] < a[2]
    ]


def test_nine_jobs_on_three_gpus_never_share_one(machine):
    jobs = [start(0.3) for _ in range(9)]
    spans = [json.loads(job.communicate(timeout=60)[0]) for job in jobs]
    assert {span[0] for span in spans} == {"GPU-a", "GPU-b", "GPU-c"}
    assert not overlaps(spans)


def test_a_killed_job_frees_its_gpu(machine):
    first = start(60, CUDA_VISIBLE_DEVICES="1")
    time.sleep(0.5)
    second = start(0, CUDA_VISIBLE_DEVICES="1")
    time.sleep(0.7)
    assert second.poll() is None  # waits for the only GPU
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert json.loads(second.communicate(timeout=20)[0])[0] == "GPU-b"


def test_visible_devices_are_respected(machine, monkeypatch):
    for value, expected in (("2,0", ["GPU-c", "GPU-a"]), ("GPU-b", ["GPU-b"]), ("MIG-x", ["MIG-x"])):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
        assert devices.gpus() == expected
    for value, message in (("7", "no GPU 7 here; allowed: 0 to 2"), ("", "is empty")):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
        with pytest.raises(UserError, match=message):
            devices.gpus()


def test_no_gpu_is_one_line(machine, monkeypatch):
    machine.write_text("#!/bin/sh\necho 'No devices were found'\nexit 6\n")
    with pytest.raises(UserError, match="no GPU here"):
        devices.gpus()
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UserError, match="not on PATH"):
        devices.gpus()


def test_snakemake_runs_one_cell_per_gpu(machine, tmp_path):
    """`--resources gpu=3`: at most three at once, each on a GPU of its own."""
    (tmp_path / "Snakefile").write_text(
        """
rule all:
    input: expand("out/{i}", i=range(6))
rule cell:
    output: "out/{i}"
    resources: gpu=1
    script: "cell.py"
"""
    )
    (tmp_path / "cell.py").write_text(
        JOB.replace("sys.argv[1]", "0.5")
        .replace("print(", "print(file=open(snakemake.output[0], 'w'), *[")
        .replace(", flush=True)", "])")
    )
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "--cores",
        "6",
        "--resources",
        "gpu=3",
        "--directory",
        tmp_path,
    ]
    done = subprocess.run([*command, "--snakefile", tmp_path / "Snakefile"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    spans = [json.loads(Path(tmp_path / "out" / str(i)).read_text()) for i in range(6)]
    assert not overlaps(spans)
    assert max(sum(a[1] <= b[1] < a[2] for a in spans) for b in spans) <= 3
