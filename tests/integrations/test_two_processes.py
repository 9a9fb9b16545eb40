"""Two gloo processes step as one does on the same rows."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from optional_packages import need
from trl_step import PAIRS, load, make_trainer, tokenizer, write_checkpoint
from two_processes import step

from projected_grpo.antipasto import attach
from projected_grpo.integrations.adapted import adapted
from projected_grpo.integrations.pair_basis import extract_basis
from projected_grpo.method.basis import Basis, Knobs
from projected_grpo.method.pairs import pair_set
from projected_grpo.trl import project

HELPERS = Path(__file__).resolve().parents[1] / "helpers"


def two(kind, *words):
    how = ["--nproc-per-node", "2", "--master-port", "0"]
    how += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        *how,
        HELPERS / "two_processes.py",
        kind,
        *words,
    ]
    env = os.environ | {"OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true", "PYTHONPATH": str(HELPERS)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A checkpoint and a basis of it."""
    folder = write_checkpoint(tmp_path_factory.mktemp("tiny"))
    basis = extract_basis(attach(load(folder)), tokenizer(), pair_set("words", PAIRS), Knobs(top_k=3))
    basis.save(folder / "basis.safetensors")
    return folder


@need("trl")
def test_two_processes_under_ddp_equal_one(made, tmp_path):
    two("ddp", made, made / "basis.safetensors", tmp_path / "two.pt")
    theirs = torch.load(tmp_path / "two.pt")
    model = attach(load(made))
    trainer = make_trainer(model, tmp_path / "one", [project(made / "basis.safetensors")])
    trainer.train()
    found = adapted(model)
    for name, ours in found.flat(found.trained).items():
        torch.testing.assert_close(theirs["theta"][name], ours, rtol=1e-5, atol=1e-6)
    log = trainer.state.log_history[0]
    for key in ("cin", "cout", "fired", "reward"):
        assert theirs["log"][key] == pytest.approx(log[key], abs=1e-5)
    assert log["cin"] > 0.01


def test_shards_of_fsdp2_are_projected_as_the_whole(made, tmp_path):
    two("fsdp2", made, made / "basis.safetensors", tmp_path / "two.pt")
    theirs = torch.load(tmp_path / "two.pt")
    callback, model = project(Basis.load(made / "basis.safetensors")), attach(load(made))
    step(model, callback, SimpleNamespace(optim="sgd", output_dir=str(tmp_path), deepspeed=None))
    ours = callback.adapted.flat(p.grad for p in callback.adapted.trained)
    for name in ours:
        torch.testing.assert_close(theirs["gradient"][name], ours[name], rtol=1e-4, atol=1e-6)
    assert theirs["seen"][0] == pytest.approx(callback._seen[0], abs=1e-5)
    assert callback._seen[0]["cin"] > 0.01
