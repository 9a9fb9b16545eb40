"""Kill the trainer at random moments: the resumed run must equal an undisturbed one, and nothing may be left over."""

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import psutil
import pytest
from safetensors.torch import load_file
from workspace import AFTER_A_SIGNAL, borrow_environment

from projected_grpo.files import read_jsonl
from projected_grpo.model.load import write_digests

ROOT = Path(__file__).resolve().parents[2]
CELL = "erase-own_mode-m0.125-s41"
STEPS = 12
DRIVER = """
import json, sys
from pathlib import Path
from types import SimpleNamespace
from projected_grpo.cells.deployed import Deployed
from projected_grpo.training.job import Machine, Sources, run_cell
from projected_grpo.job import job

tree, out = Path(sys.argv[1]), Path(sys.argv[2])
params = json.loads((tree / "grpo" / "{cell}" / "run.json").read_text())["settings"]
params["training"]["steps"] = {steps}
models = tree / "models" / "small-s41"
out.mkdir(exist_ok=True)
with job(SimpleNamespace(rule="grpo", wildcards={{}}, params={{}}, log=[str(out / "log")], threads=1)):
    run_cell(
        params=json.dumps(params),
        sources=Sources(
            base=str(models / "base"),
            svd=models / "svd.safetensors",
            problems=models / "problems.jsonl.gz",
            pool=tree / "teacher_pool" / "small-s41",
            basis=tree / "basis" / "small-s41" / "own_mode.safetensors",
        ),
        machine=Machine(),
        pool_config={{"problems": 8, "modes": ["run_tests", "sentinel", "stdout_marker", "file_marker"], "names": 1}},
        deployed=Deployed(known=4, novel=4, plain=2, samples=2),
        folder=out / "run",
        checkpoint=out / "checkpoint",
        record={{"cell": "{cell}", "code": "x"}},
        events=Path(sys.argv[3]) if sys.argv[3:] else None,
    )
"""


def start(finished, out, *events):
    environ = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "OMP_NUM_THREADS": "1",
        "TMPDIR": str(out.parent / "tmp"),
    }
    (out.parent / "tmp").mkdir(exist_ok=True)
    command = [
        sys.executable,
        "-c",
        DRIVER.format(cell=CELL, steps=STEPS),
        str(finished / "results/smoke"),
        str(out),
        *map(str, events),
    ]
    return subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, start_new_session=True, text=True)


def run_to_the_end(finished, out):
    process = start(finished, out)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return results(out)


def results(out):
    steps = pd.read_parquet(out / "run/steps.parquet")
    steps = steps[[name for name in steps if "seconds" not in name]]
    stored = {
        name: pd.read_parquet(out / f"run/{name}.parquet") for name in ("rollouts", "teacher", "deployed")
    }
    deltas, adapter = (load_file(out / f"run/{name}.safetensors") for name in ("deltas", "adapter"))
    return {"steps": steps, **stored}, {
        **adapter,
        **{f"steps {name}": value for name, value in deltas.items()},
    }


def assert_equal(got, expected):
    for name, frame in expected[0].items():
        pd.testing.assert_frame_equal(got[0][name], frame, check_exact=True)
    assert {k: v.tolist() for k, v in got[1].items()} == {k: v.tolist() for k, v in expected[1].items()}


def steps_logged(out):
    log = out / "log"
    return log.read_text().count(" step ") if log.exists() else 0


def wait_until(process, ready):
    deadline = time.time() + 120
    while not ready() and process.poll() is None and time.time() < deadline:
        time.sleep(0.01)
    assert process.poll() is None, process.stderr.read()


def wait_for_step(process, out, step):
    wait_until(process, lambda: steps_logged(out) >= step)


@pytest.fixture(scope="module")
def undisturbed(finished, tmp_path_factory):
    return run_to_the_end(finished, tmp_path_factory.mktemp("undisturbed") / "out")


def test_a_tracker_that_fails_costs_no_step(finished, undisturbed, tmp_path):
    out, blocked = tmp_path / "out", tmp_path / "a file"
    blocked.touch()
    process = start(finished, out, blocked / "events")
    process.communicate(timeout=300)
    assert process.returncode != 0 and (out / "checkpoint").exists()
    process = start(finished, out, tmp_path / "events")
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert (out / "log").read_text().count(f" step {STEPS}/{STEPS} ") == 1  # it was not trained again
    assert list((tmp_path / "events").iterdir())
    assert not (out / "checkpoint").exists()
    assert_equal(results(out), undisturbed)


def assert_whole(path):
    """Fail where a file lies half-written under its final name."""
    if path.suffix == ".parquet":
        assert len(pd.read_parquet(path))
    elif path.suffix == ".safetensors":
        assert load_file(path)
    elif path.suffix == ".json":
        assert json.loads(path.read_text())
    elif path.suffix == ".gz":
        assert list(read_jsonl(path))
    elif path.suffix == ".pt":
        data = path.read_bytes()
        assert hashlib.sha256(data[32:]).digest() == data[:32]
    else:
        assert path.is_dir() or path.name == "log", path


def kill_and_resume(finished, out, seed):
    draws = random.Random(seed)
    process = start(finished, out)
    wait_for_step(process, out, draws.randrange(STEPS))
    time.sleep(draws.random() * 0.3)
    if seed % 2:
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()
    for path in out.rglob("*"):
        if not path.name.startswith("."):  # what atomic() had not renamed yet
            assert_whole(path)
    return run_to_the_end(finished, out)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 22))])
def test_killed_runs_resume_to_the_same_result(finished, undisturbed, seed, tmp_path):
    assert_equal(kill_and_resume(finished, tmp_path / "out", seed), undisturbed)


@pytest.fixture(scope="module")
def stopped(finished, tmp_path_factory):
    """A run that ended after its second step, with its checkpoint."""
    out = tmp_path_factory.mktemp("stopped") / "out"
    process = start(finished, out)
    wait_for_step(process, out, 2)
    process.terminate()
    process.wait(60)
    assert (out / "checkpoint/state.pt").exists()
    return out


@pytest.mark.parametrize("name", ["base/model.safetensors", "base/tokenizer.json", "svd.safetensors"])
def test_a_checkpoint_on_another_base_or_svd_is_not_resumed(finished, stopped, tmp_path, name):
    tree, out = tmp_path / "tree", tmp_path / "out"
    shutil.copytree(finished / "results/smoke", tree / "results/smoke")
    shutil.copytree(stopped, out)
    exchanged = tree / "results/smoke/models/small-s41" / name
    data = exchanged.read_bytes()
    exchanged.write_bytes(data + b" " if name.endswith("json") else data[:-1] + bytes([data[-1] ^ 1]))
    if exchanged.parent.name == "base":
        write_digests(exchanged.parent)  # a sound base, but another one
    process = start(tree, out)
    wait_until(process, lambda: "starting from step 1" in (out / "log").read_text())
    process.kill()
    process.wait()
    assert "belongs to other settings, code or inputs" in (out / "log").read_text()


@pytest.mark.parametrize("limit", AFTER_A_SIGNAL)
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_signal_ends_in_time_keeps_the_checkpoint_and_leaves_nothing(
    finished, undisturbed, number, limit, tmp_path
):
    out = tmp_path / "out"
    process = start(finished, out)
    wait_for_step(process, out, 3)
    children = psutil.Process(process.pid).children(recursive=True)
    assert children
    process.send_signal(number)
    process.wait(timeout=limit)
    assert process.returncode != 0
    _, alive = psutil.wait_procs(children, timeout=limit)
    assert not alive
    assert (out / "checkpoint/state.pt").exists()
    assert list((tmp_path / "tmp").iterdir()) == []
    assert_equal(run_to_the_end(finished, out), undisturbed)
    assert not (out / "checkpoint").exists()


@pytest.fixture
def long_run(finished, tmp_path):
    """A cell of 400 steps in a questions file of its own: its id, and what the command line says for it."""
    row = {"name": "long", "arm": "erase", "basis": "own_mode", "preset": "long"}
    questions = {"Q10": {"title": "Long", "asks": "How long?", "rows": [row]}}
    config = {
        "questions": str(tmp_path / "questions.yaml"),
        "grpo": {"presets": {"long": {"steps": 400, "group": 8}}},
    }
    for name, content in (("questions", questions), ("long", config)):
        (tmp_path / f"{name}.yaml").write_text(json.dumps(content))
    cell = "erase-own_mode-long-m0.125-s41"
    borrow_environment(finished)
    yield cell, ["--configfile", "config/smoke.yaml", tmp_path / "long.yaml", "--cores", "1"]
    shutil.rmtree(finished / "results/smoke/checkpoints", ignore_errors=True)


@pytest.mark.parametrize("limit", AFTER_A_SIGNAL)
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_signal_to_the_wrapper_ends_its_training_run_in_time(finished, long_run, number, limit, tmp_path):
    cell, arguments = long_run
    (tmp_path / "tmp").mkdir()
    environ = {**os.environ, "OMP_NUM_THREADS": "1", "PGRPO_ENV": "cpu", "TMPDIR": str(tmp_path / "tmp")}
    command = [finished / "snakemake", *arguments, f"results/smoke/grpo/{cell}/run.json"]
    process = subprocess.Popen(
        command, env=environ, stderr=subprocess.PIPE, start_new_session=True, text=True
    )
    log = finished / f"results/smoke/logs/grpo/{cell}.log"
    log.unlink(missing_ok=True)
    wait_until(process, lambda: log.exists() and log.read_text().count(" step ") >= 3)
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    process.communicate(timeout=limit)
    assert process.returncode == 128 + number
    assert (
        "ended by KeyboardInterrupt" in log.read_text()
    )  # by itself: what is killed after 4.5 s says nothing
    assert not [child for child in children if child.is_running()]
    assert_whole(finished / f"results/smoke/checkpoints/{cell}/state.pt")
    assert list((tmp_path / "tmp").iterdir()) == []


WRITERS = {
    "rows": "files.write_jsonl('m/x', ({'n': i, 'text': os.urandom(200).hex()} for i in range(100000)))",
    "safetensors": "with files.atomic('m/x') as path: save_file({'x': torch.zeros(1 << 20)}, path)",
    "torch": "with files.atomic('m/x') as path: torch.save({'x': torch.zeros(1 << 20)}, path)",
    "folder": "with files.atomic_folder('m/x') as path: (path / 'y').write_bytes(bytes(1 << 20))",
}


@pytest.mark.parametrize("writer", WRITERS)
def test_a_full_disk_is_named_and_leaves_no_half_file(tmp_path, writer):
    """A tiny file system in a mount namespace of our own; skipped where we may not make one."""
    script = (
        "import os, sys, torch\n"
        "from safetensors.torch import save_file\n"
        "from projected_grpo import files\n"
        "from projected_grpo.errors import UserError\n"
        "try:\n"
        f"    {WRITERS[writer]}\n"
        "except UserError as error: print(error); sys.exit(7 if os.listdir('m') == [] else 8)\n"
    )
    (tmp_path / "m").mkdir()
    (tmp_path / "script.py").write_text(script)
    mount = f"mount -t tmpfs -o size=256k none m && exec {sys.executable} script.py"
    command = ["unshare", "-Urm", "sh", "-c", mount]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip("no mount namespace here: " + done.stderr.strip())
    assert done.returncode == 7, done.stdout + done.stderr
    assert "m/x: the disk is full" in done.stdout
