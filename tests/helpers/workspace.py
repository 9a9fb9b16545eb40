"""Copies of the repository, and Snakemake run in them."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Seconds from a signal to the end. Five are what a user is promised; a machine that shares its cores takes longer.
AFTER_A_SIGNAL = [30, pytest.param(5, marks=pytest.mark.slow)]
TARGETS = ["reports/smoke.html"]  # every rule but the self-taught evaluator's stands before it

JOB = re.compile(r"^\s*(\w+)\s+(\d+)$", re.M)


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


def edit(tree, name, old, new):
    """Put `new` in place of the first `old` in a file of a copy; return the text that it had."""
    text = (tree / name).read_text()
    assert old in text, f"{old!r} is not in {name}"
    (tree / name).write_text(text.replace(old, new, 1))
    return text


def borrow_environment(root, python=sys.executable):
    """Make a copy's `.venv` as its wrapper wants it, without installing: the packages are this environment's."""
    subprocess.run([python, "-m", "venv", "--without-pip", root / ".venv"], check=True)
    site = next((root / ".venv" / "lib").glob("python*/site-packages"))
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    spec = importlib.util.spec_from_file_location("environment", root / "envs" / "environment.py")
    environment = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(environment)
    environment.STAMP.write_text(environment.stamp("cpu", "{}.{}".format(*sys.version_info)))


def snakemake(folder, *arguments, configs=("config/smoke.yaml",), check=True, wrapper=False):
    """Run Snakemake in a copy, on the copy's own code; an error shows the logs of the jobs.

    wrapper: by the copy's `./snakemake`, from another folder, as people do.
    """
    environ = {**os.environ, "PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1", "PGRPO_ENV": "cpu"}
    command = [folder / "snakemake"] if wrapper else [sys.executable, "-m", "snakemake"]
    command += [*(["--configfile", *configs] if configs else []), "--cores", "2", *arguments]
    cwd = "/" if wrapper else folder
    done = subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True)
    if check and done.returncode:
        logs = "\n".join(f"{path}: {path.read_text()}" for path in (folder / "results").rglob("*.log"))
        raise AssertionError(done.stdout[-3000:] + done.stderr[-6000:] + logs[-3000:])
    return done


def planned(folder, *targets, config=(), **how):
    """Return rule -> number of jobs that a dry run would start, and the cells that would be trained."""
    done = snakemake(folder, *(targets or TARGETS), "-n", *config, **how)
    text = done.stdout + done.stderr
    jobs = Counter({rule: int(n) for rule, n in JOB.findall(text.split("Job stats:")[-1]) if rule != "total"})
    cells = set(re.findall(r"^rule grpo:$.*?^\s+wildcards: cell=(\S+)$", text, re.M | re.S))
    return jobs, cells
