"""Code and pair sets edited while a real run goes: a job runs what was planned or ends with one line."""

import os
import shutil
import subprocess
import sys
import time
from collections import Counter

import pandas as pd
import pytest
from workspace import edit, planned, snakemake

CELL = "erase-own_mode-m0.125-s41"
PROJECTION = "src/projected_grpo/method/projection.py"
PAIRS = "config/pairs/own_mode.yaml"
AGAIN = "changed while this job ran; type the same command again"


@pytest.fixture
def tree(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "tree", ignore=shutil.ignore_patterns(".venv"))
    return tmp_path / "tree"


def start(tree, target):
    environ = {**os.environ, "PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1"}
    words = ["-m", "snakemake", "--configfile", "config/smoke.yaml", "--cores", "1", target]
    with open(tree / "said", "w") as said:
        return subprocess.Popen(
            [sys.executable, *words], cwd=tree, env=environ, stdout=said, stderr=subprocess.STDOUT
        )


def wait_for(process, path, text):
    deadline = time.monotonic() + 120
    while not (path.exists() and text in path.read_text()):
        assert process.poll() is None and time.monotonic() < deadline, path
        time.sleep(0.02)


def train(tree):
    """Start the run of CELL anew; return its process, once it trains, and its `run.json`."""
    run, log = tree / f"results/smoke/grpo/{CELL}/run.json", tree / f"results/smoke/logs/grpo/{CELL}.log"
    run.unlink()
    log.unlink()
    process = start(tree, str(run.relative_to(tree)))
    wait_for(process, log, " step 1/")
    return process, run


def ended_by(tree, process, said):
    """Check that a run failed with that line and nothing else."""
    assert process.wait(300)
    text = (tree / "said").read_text()
    assert {line for line in text.splitlines() if line.startswith("error: ")} == {f"error: {said}"}, text
    assert "Traceback" not in text


def test_code_edited_before_a_job_starts_ends_it_and_its_undoing_is_no_way_around(tree):
    run = tree / f"results/smoke/grpo/{CELL}/run.json"
    run.unlink()
    process = start(tree, str(run.relative_to(tree)))
    wait_for(process, tree / "said", "Job stats:")
    whole = edit(tree, PROJECTION, "kept = g - removed", "kept = g + removed")
    ended_by(tree, process, f"{PROJECTION}: {AGAIN}")
    (tree / PROJECTION).write_text(whole)
    assert not run.exists()
    assert planned(tree, str(run.relative_to(tree))) == (Counter(grpo=1), {CELL})


def test_code_edited_while_a_job_runs_ends_it_before_it_leaves_a_record(tree):
    process, run = train(tree)
    edit(tree, PROJECTION, "kept = g - removed", "kept = g + removed")
    ended_by(tree, process, f"{PROJECTION}: {AGAIN}")
    assert not run.exists()


@pytest.mark.slow
def test_loaded_code_edited_and_put_back_while_a_job_runs_changes_nothing(tree):
    steps = pd.read_parquet(tree / f"results/smoke/grpo/{CELL}/steps.parquet")
    process, run = train(tree)
    whole = edit(tree, PROJECTION, "kept = g - removed", "kept = g + removed")
    (tree / PROJECTION).write_text(whole)
    assert process.wait(300) == 0, (tree / "said").read_text()
    again = pd.read_parquet(run.with_name("steps.parquet"))
    timed = [name for name in steps if "seconds" in name]
    pd.testing.assert_frame_equal(again.drop(columns=timed), steps.drop(columns=timed), check_exact=True)


def test_pairs_edited_after_the_plan_end_the_job_that_reads_them(tree):
    basis = tree / "results/smoke/basis/small-s41/own_mode.safetensors"
    whole = basis.read_bytes()
    basis.unlink()
    process = start(tree, str(basis.relative_to(tree)))
    wait_for(process, tree / "said", "Job stats:")
    text = edit(tree, PAIRS, "return", "pass  # return")
    ended_by(tree, process, f"{PAIRS}: {AGAIN}")
    assert not basis.exists()
    (tree / PAIRS).write_text(text)
    snakemake(tree, str(basis.relative_to(tree)))
    assert basis.read_bytes() == whole  # equal runs give equal bytes


def test_questions_edited_after_the_plan_end_the_page_that_is_made_of_them(tree):
    page, questions = tree / "results/smoke/Q10.md", "config/questions-smoke.yaml"
    page.unlink()
    process = start(tree, str(page.relative_to(tree)))
    wait_for(process, tree / "said", "Job stats:")
    row = "    - { name: own_mode, arm: erase, basis: own_mode"
    edit(tree, questions, row, f"{row.replace('own_mode,', 'late, mix: 0,', 1)} }}\n{row}")
    ended_by(tree, process, f"{questions}: {AGAIN}")
    assert not page.exists()


def test_an_input_exchanged_while_a_job_runs_ends_it(tree):
    other = tree / "results/smoke/basis/small-s41/random.safetensors"
    process, run = train(tree)
    shutil.copy(other, other.with_name("own_mode.safetensors"))
    ended_by(tree, process, f"results/smoke/basis/small-s41/own_mode.safetensors: {AGAIN}")
    assert not run.exists()
