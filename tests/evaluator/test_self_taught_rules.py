"""The self-taught evaluator's rules through Snakemake, on the smoke run's rollouts.

The smoke base writes no code that runs, so the critic's own words are a server's here, unjudged code counts as an
event (`min_delta: 0`), and the pairs of code come from rollouts written for the test.
"""

import pandas as pd
import pytest
import yaml
from fake_openai_server import running
from test_self_taught_traces import rollouts
from workspace import snakemake

from projected_grpo.method.pairs import load_pairs

RESULTS = "results/smoke/self_taught/small-s41"


@pytest.fixture
def taught(finished, tmp_path):
    """Make `target` with these settings of the `self_taught` block laid over the smoke config's."""

    def make(target, *arguments, results="results/smoke", **settings):
        (tmp_path / "taught.yaml").write_text(yaml.safe_dump({"results": results, "self_taught": settings}))
        configs = ("config/smoke.yaml", str(tmp_path / "taught.yaml"))
        snakemake(finished, *arguments, "--", target, configs=configs)
        return finished / target

    return make


def test_the_critic_is_trained_on_a_finished_runs_rollouts(taught):
    training = {"rank": 2, "alpha": 4, "lr": 0.01, "batch": 2, "steps": 2}
    training |= {"calibration_lr": 0.01, "calibration_steps": 1}
    adapter = taught(f"{RESULTS}/critic/adapter_model.safetensors", critic="trained", training=training)
    assert (adapter.parent / "adapter_config.json").exists()


def test_the_rounds_with_a_server_end_in_pairs_and_a_page(taught, monkeypatch):
    with running() as server:
        for name, value in (("BASE_URL", server.url), ("API_KEY", "sk-none"), ("MODEL", "judge")):
            monkeypatch.setenv(f"OPENAI_{name}", value)
        sizes = {"rounds": 1, "pool": 4, "per_round": 4, "measured": 4, "pairs": 1, "min_delta": 0}
        page = taught("results/smoke/self_taught.md", critic="server", **sizes)
        made = taught(f"{RESULTS}/pairs/self_taught.yaml", critic="server", **sizes)
    assert server.requests
    assert "small-s41" in page.read_text()
    assert len(load_pairs(made)) == 1
    assert len(pd.read_parquet(page.with_suffix(".parquet")))


def test_pairs_of_code_come_from_flagged_and_unflagged_rollouts(taught, finished):
    given = finished / "results/flagged/grpo/vanilla-final-m0.125-s41/rollouts.parquet"
    given.parent.mkdir(parents=True)
    rollouts(given)
    made = taught(
        "results/flagged/self_taught/small-s41/pairs/self_taught_code.yaml",
        *("--allowed-rules", "self_taught_code"),
        results="results/flagged",
        critic="trained",
        pairs=1,
    )
    (pair,) = load_pairs(made).pairs
    assert "trick" in pair.hack and "right" in pair.clean
