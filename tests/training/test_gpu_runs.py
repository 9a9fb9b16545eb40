"""A run of every arm on a GPU against the same run on the CPU; skipped where there is no GPU."""

from dataclasses import replace

import pytest
import test_train
from on_gpu import DEVICE, moved, needs_gpu
from test_train import EVERY, finish, make_arm, make_run
from tiny import tiny_model

from projected_grpo.method.basis import extract

pytestmark = needs_gpu
FACTS = ("step", "problem_id", "mode", "sample", "completion", "gt_pass", "channel", "reward")


def stored(basis):
    """A basis as a run reads it from its file."""
    return replace(
        basis, **{side: {n: t.to(DEVICE) for n, t in getattr(basis, side).items()} for side in "VS"}
    )


def both(make, tmp_path, monkeypatch):
    cpu = finish(make(), tmp_path / "cpu")
    monkeypatch.setattr(test_train, "tiny_model", lambda *a, **k: moved(tiny_model(*a, **k)))
    monkeypatch.setattr(test_train, "extract", lambda *a: stored(extract(*a)))
    return cpu, finish(make(), tmp_path / "gpu")


def compare(cpu, gpu):
    rows, drawn, run = cpu
    again, redrawn, other = gpu
    assert [[row.get(f) for f in FACTS] for row in redrawn] == [[row.get(f) for f in FACTS] for row in drawn]
    for a, b in zip(rows, again, strict=True):
        assert a.keys() == b.keys()
        for key, value in a.items():
            assert b[key] == (
                pytest.approx(value, rel=0.02, abs=1e-3) if isinstance(value, float) else value
            ), key
    for name, theta in run.policy.theta.items():
        assert (other.policy.theta[name].cpu() - theta).norm() < 0.02 * theta.norm() + 1e-4, name


@pytest.mark.parametrize("arm, monitor", EVERY)
def test_every_arm_trains_as_it_does_on_the_cpu(arm, monitor, tmp_path, monkeypatch):
    compare(*both(lambda: make_arm(arm, monitor), tmp_path, monkeypatch))


@pytest.mark.parametrize(
    "setting",
    [
        {"adapter": "lora"},
        {"arm": "erase", "basis": "own", "space": "update"},
        {"grpo": {"beta": 0.3, "micro_batch_tokens": 30}},
    ],
    ids=str,
)
def test_other_settings_train_as_they_do_on_the_cpu(setting, tmp_path, monkeypatch):
    compare(*both(lambda: make_run(**setting), tmp_path, monkeypatch))
