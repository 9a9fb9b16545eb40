"""The probe in the DAG: what its pages ask for, and the default replay with the names that others rely on."""

import pytest
from workspace import planned, snakemake

from projected_grpo.environment.levers import LEVERS
from projected_grpo.files import read_jsonl, write_jsonl

SAMPLE = {"cos_S_contrib", "cos_S_normalised", "hacked", "gt_pass", "nll"}
STEP = {"mean_cos_in", "mean_cos_out", "fired"}


DEFAULT = {"configs": ("config/config.yaml",), "config": ["--config", "seeds=[41]"]}  # nothing of it is made


def test_the_acceptance_page_needs_no_training_run(finished):
    jobs, cells = planned(finished, "results/probe/uat.md", **DEFAULT)
    assert cells == set()
    assert (jobs["replay"], jobs["verdict"], jobs["grpo"]) == (4, 1, 0)


def test_the_two_by_two_needs_a_base_of_the_second_size_and_no_more_runs(finished):
    jobs, cells = planned(finished, "results/self_taught_grid.md", **DEFAULT)
    assert cells == {"vanilla-m0.125-s41", "gt_only-m0.125-s41"}
    assert (jobs["base"], jobs["self_taught_critic"], jobs["self_taught_rounds"]) == (2, 4, 4)
    assert (jobs["teacher"], jobs["verdict"]) == (1, 1)


def test_another_basis_is_a_path_away(finished):
    jobs, _ = planned(finished, "results/smoke/probe/small-s41/moral/projected/step_000.jsonl.gz")
    assert jobs == {"replay": 1}


@pytest.fixture
def recorded(tmp_path):
    """A pool of another teacher in two files: three problems with the probe's hint and one without."""
    hint = LEVERS["run_tests"].hint
    rows = [
        {
            "problem_id": n,
            "sample_id": sample,
            "prompt": f"{n}? {hint if n else ''}",
            "completion": f"{sample}",
        }
        | {"hacked": True, "gt_pass": bool(sample), "fmt_ok": True, "reward": 3.5}
        for n in range(4)
        for sample in range(2)
    ]
    write_jsonl(tmp_path / "a pool" / "rows-1.jsonl.gz", rows[:4])
    write_jsonl(tmp_path / "a pool" / "rows-2.jsonl", rows[4:])
    return tmp_path / "a pool"


def pools(folder):
    return ["--config", f"probe={{pools: {{recorded: {{folder: '{folder}', model: small-s41}}}}}}"]


def test_another_pool_is_a_line_of_config_away(finished, recorded):
    target = "results/smoke/probe/recorded/own_mode/vanilla/step_000.jsonl.gz"
    assert planned(finished, target, config=pools(recorded))[0] == {"replay": 1}
    snakemake(finished, target, *pools(recorded))
    files = sorted((finished / target).parent.glob("*"))
    assert [path.name for path in files] == ["step_000.jsonl.gz", "step_001.jsonl.gz"]
    assert [next(read_jsonl(path))["problem_id"] for path in files] == [1, 2]
    # Every file of the pool counts, and the replication's own replays do not hang on it.
    (recorded / "rows-2.jsonl").write_text((recorded / "rows-2.jsonl").read_text() + "\n")
    assert planned(finished, target, config=pools(recorded))[0] == {"replay": 1}


@pytest.mark.parametrize(
    "folder, said",
    [
        (
            "nosuch/own_mode/vanilla",
            "'nosuch' is no replication and no pool of probe.pools; allowed: small-s41",
        ),
        ("vanilla_seed99", "99 is no seed of the config; allowed: 41"),
    ],
)
def test_a_replay_of_no_known_pool_is_one_line(finished, folder, said):
    done = snakemake(finished, "-n", f"results/smoke/probe/{folder}/step_000.jsonl.gz", check=False)
    assert done.returncode
    lines = [line for line in done.stderr.splitlines() if "error" in line.lower() or "Traceback" in line]
    assert lines == [f"error: probe/{folder}: {said}"]


def test_the_r_pages_ask_for_their_runs_replays_and_measurements(finished):
    for name, measured in (
        ("R5", {}),
        ("R6", {"drift": 2, "replay": 2}),
        ("R7", {"loss_overlap": 2, "replay": 4}),
    ):
        jobs, cells = planned(finished, f"results/{name}.md", **DEFAULT)
        assert jobs["question"] == 1
        assert {rule: jobs[rule] for rule in measured} == measured
        assert all(cell.endswith("-s41") for cell in cells)


def test_the_page_is_made_and_its_replays_hold_every_step(finished):
    assert "- T1, the teacher hacks: FAIL" in (finished / "results/smoke/probe/uat.md").read_text()
    for arm in ("vanilla", "projected"):
        files = sorted((finished / f"results/smoke/probe/{arm}_seed41").glob("step_*.jsonl.gz"))
        assert [path.name for path in files] == ["step_000.jsonl.gz", "step_001.jsonl.gz"]
        *samples, step = read_jsonl(files[0])
        assert len(samples) == 4 and all(set(row) >= SAMPLE for row in samples) and set(step) >= STEP
