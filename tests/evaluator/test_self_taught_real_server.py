"""`config/server.yaml` against a real server: `transformers serve` with a tiny model, which takes no JSON schema."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest
import yaml
from taught import MACHINE, make_judge, rollouts

from projected_grpo.cells.self_taught import SelfTaught
from projected_grpo.evaluator import jobs
from projected_grpo.evaluator.server import ServerBackend

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = Path(sys.prefix, "optional")  # beside the environment, which is what its lock says

pytestmark = [
    pytest.mark.ci,
    pytest.mark.slow,  # half a minute for each start of the server and its answers
    pytest.mark.skipif(not PACKAGES.exists(), reason="needs fastapi and uvicorn: make optional"),
]


@contextmanager
def serving(model, log):
    """The URL of a server of `model` while the block runs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [Path(sys.prefix, "bin", "transformers"), "serve", model, "--device", "cpu"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    env = os.environ | {"PYTHONPATH": str(PACKAGES), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    with open(log, "wb") as file, subprocess.Popen(command, env=env, stdout=file, stderr=file) as process:
        try:
            for _ in range(1200):
                assert process.poll() is None, Path(log).read_text()[-2000:]
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1)
                    break
                except OSError:
                    time.sleep(0.1)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()


@pytest.fixture
def settings(monkeypatch):
    """The settings that a user of config/server.yaml has, with fewer questions."""
    given = {}
    for name in ("config.yaml", "server.yaml"):
        given |= yaml.safe_load((ROOT / "config" / name).read_text())["self_taught"]
    monkeypatch.setenv("OPENAI_API_KEY", "")
    return SelfTaught.model_validate(given | {"rounds": 1, "pool": 4, "per_round": 3, "measured": 3})


def test_a_server_that_ignores_the_schema_gives_pairs_and_scores(tmp_path, settings, monkeypatch):
    model = make_judge(tmp_path)
    monkeypatch.setenv("OPENAI_MODEL", model)
    path = rollouts(tmp_path / "r.parquet", 8)
    out = tmp_path / "out"
    with serving(model, tmp_path / "log") as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        jobs.run_self_taught([path], "none", None, out, tmp_path / "j", settings, MACHINE, "m-s41", 41)
    assert "Ignoring unsupported fields in the request: {'response_format'}" in (tmp_path / "log").read_text()
    record = json.loads((out / "run.json").read_text())
    assert record["pairs"] == record["rounds"][0]["asked"] == 3, record["rounds"]
    said = pd.read_parquet(out / "evaluations.parquet")
    assert said[said["condition"] == "before"]["phi"].tolist() == [10.0] * 3


def test_a_model_that_names_no_end_token_is_told_from_one_that_cannot_answer(
    tmp_path, settings, monkeypatch, caplog
):
    model = make_judge(tmp_path, names_its_end=False)
    monkeypatch.setenv("OPENAI_MODEL", model)
    with serving(model, tmp_path / "log") as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        backend = ServerBackend(max_tokens=64)
        replies = list(backend.answer(["Hello", "you"], {"type": "object"}, 0.0, 0))
    assert [reply.problem for reply in replies] == ["truncated"] * 2
    assert "one whose files name no end token never stops" in caplog.text
