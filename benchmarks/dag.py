"""What the DAG costs beside the work: seconds of a dry run of everything, and of a job that does nothing."""

import os
import re
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


def dry_run(seeds: int) -> dict:
    """Jobs and seconds of `snakemake -n` for all questions at that many seeds, nothing made yet."""
    with tempfile.TemporaryDirectory() as folder:
        results = f"results={folder}/results"
        command = [sys.executable, "-m", "snakemake", "-n", "--cores", "1", EVERYTHING]
        start = time.perf_counter()
        done = subprocess.run(
            [*command, "--config", results, f"seeds={seeds}", "--forceall"],
            cwd=ROOT, capture_output=True, text=True,
        )  # fmt: skip
        seconds = time.perf_counter() - start
    if done.returncode:
        raise RuntimeError(f"the dry run failed: {done.stderr.strip()[-400:]}")
    total = re.findall(r"^total\s+(\d+)", done.stdout, re.MULTILINE)
    return {"seeds": seeds, "jobs": int(total[-1]), "seconds": round(seconds, 2)}


def job_overhead() -> float:
    """Wall seconds that one `script:` job of a toy workflow adds."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "touch.py").write_text("open(snakemake.output[0], 'w').close()\n")

        def run(jobs: int) -> float:
            Path(folder, "Snakefile").write_text(TOY % jobs)
            command = [sys.executable, "-m", "snakemake", "--cores", "1", "--quiet", "all", "--forceall"]
            start = time.perf_counter()
            environment = {**os.environ, "SNAKEMAKE_PROFILE": "none"}
            subprocess.run(command, cwd=folder, check=True, capture_output=True, env=environment)
            return time.perf_counter() - start

        return (run(JOBS + 1) - run(1)) / JOBS


def measure() -> dict:
    return {
        "dry_run": [dry_run(seeds) for seeds in (1, 4)],
        "seconds_per_empty_job": round(job_overhead(), 3),
    }
