"""What the DAG costs beside the work: a dry run of everything, and a job that does nothing."""

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EVERYTHING = "reports/paper.html"
JOBS = 10
TOY = """
rule all:
    input: expand("out/{i}", i=range(%d))
rule one:
    output: "out/{i}"
    script: "touch.py"
"""


def spent() -> float:
    """CPU seconds of all processes started so far and ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def dry_run(seeds: int) -> dict:
    """Jobs, CPU and wall seconds of `snakemake -n` for all questions at that many seeds, nothing made yet."""
    with tempfile.TemporaryDirectory() as folder:
        results = f"results={folder}/results"
        command = [sys.executable, "-m", "snakemake", "-n", "--cores", "1", EVERYTHING]
        start, clock = spent(), time.perf_counter()
        done = subprocess.run(
            [*command, "--config", results, f"seeds={seeds}", "--forceall"],
            cwd=ROOT, capture_output=True, text=True,
        )  # fmt: skip
        seconds, wall = spent() - start, time.perf_counter() - clock
    if done.returncode:
        raise RuntimeError(f"the dry run failed: {done.stderr.strip()[-400:]}")
    total = re.findall(r"^total\s+(\d+)", done.stdout, re.MULTILINE)
    return {
        "seeds": seeds, "jobs": int(total[-1]), "cpu_seconds": round(seconds, 2), "wall_seconds": round(wall, 2),
    }  # fmt: skip


def job_overhead() -> float:
    """CPU seconds that one `script:` job of a toy workflow adds."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "touch.py").write_text("open(snakemake.output[0], 'w').close()\n")

        def run(jobs: int) -> float:
            Path(folder, "Snakefile").write_text(TOY % jobs)
            command = [sys.executable, "-m", "snakemake", "--cores", "1", "--quiet", "all", "--forceall"]
            start = spent()
            environment = {**os.environ, "SNAKEMAKE_PROFILE": "none"}
            subprocess.run(command, cwd=folder, check=True, capture_output=True, env=environment)
            return spent() - start

        return (run(JOBS + 1) - run(1)) / JOBS


def measure() -> dict:
    return {
        "dry_run": [dry_run(seeds) for seeds in (1, 5)],
        "cpu_seconds_per_empty_job": round(job_overhead(), 3),
    }
