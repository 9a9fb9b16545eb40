"""Finished runs in trackio's own store, read back by its own interface."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from projected_grpo.files import write_json
from projected_grpo.parquet import write_parquet
from projected_grpo.training.trackio import project_of

PACKAGES = Path(sys.prefix, "optional")
WRITE = """
import json, sys
from pathlib import Path
from projected_grpo.training.trackio import write_runs
print(write_runs([Path(word) for word in sys.argv[1:]], "p"), file=sys.stderr)
import trackio
from trackio.sqlite_storage import SQLiteStorage
runs = {run.name: (run.config["digest"], SQLiteStorage.get_logs("p", run.name)) for run in trackio.Api().runs("p")}
print(json.dumps(runs))
"""


def make_run(folder, rates, digest):
    folder.mkdir(exist_ok=True)
    write_parquet(
        folder / "steps.parquet",
        [{"step": step, "hack_s": x, "arm": "erase"} for step, x in enumerate(rates)],
    )
    write_json(folder / "run.json", {"cell": folder.name, "digest": digest, "settings": {"seed": 41}})


@pytest.mark.skipif(not PACKAGES.exists(), reason="needs trackio: make optional")
def test_runs_are_written_once_and_anew_where_they_changed(tmp_path):
    def written():
        env = os.environ | {
            "PYTHONPATH": str(PACKAGES),
            "TRACKIO_DIR": str(tmp_path / "store"),
            "HF_HUB_OFFLINE": "1",
        }
        command = [sys.executable, "-c", WRITE, tmp_path / "a-s41", tmp_path / "b-s41", tmp_path / "to-come"]
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        runs = json.loads(done.stdout)
        return int(done.stderr), {
            name: (
                digest,
                [(row["step"], row["hack_s"]) for row in sorted(rows, key=lambda row: row["step"])],
            )
            for name, (digest, rows) in runs.items()
        }

    make_run(tmp_path / "a-s41", [0.0, 0.25, 0.5], "1")
    make_run(tmp_path / "b-s41", [0.0, 0.125], "2")
    first = {"a-s41": ("1", [(0, 0.0), (1, 0.25), (2, 0.5)]), "b-s41": ("2", [(0, 0.0), (1, 0.125)])}
    assert written() == (2, first)
    assert written() == (0, first)
    make_run(tmp_path / "b-s41", [0.75], "3")
    assert written() == (1, first | {"b-s41": ("3", [(0, 0.75)])})


def test_each_folder_of_results_is_a_project():
    assert [project_of(name) for name in ("results", "results/demo", "/x/ten")] == [
        "projected_grpo",
        "projected_grpo-demo",
        "projected_grpo-ten",
    ]
