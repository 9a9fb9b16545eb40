"""The probe in the DAG: what its pages ask for, and the default replay with the names that others rely on."""

from test_dag import planned

from projected_grpo.files import read_jsonl

SAMPLE = {"cos_S_contrib", "cos_S_normalised", "hacked", "gt_pass", "nll"}
STEP = {"mean_cos_in", "mean_cos_out", "fired"}


DEFAULT = {"configs": ("config/config.yaml",), "config": ["--config", "seeds=[41]"]}  # nothing of it is made


def test_the_acceptance_page_needs_no_training_run(finished):
    jobs, cells = planned(finished, "results/probe/uat.md", **DEFAULT)
    assert cells == set()
    assert (jobs["replay"], jobs["uat"], jobs["grpo"]) == (4, 1, 0)


def test_another_basis_is_a_path_away(finished):
    jobs, _ = planned(finished, "results/smoke/probe/small-s41/moral/projected/step_000.jsonl.gz")
    assert jobs == {"replay": 1}


def test_the_r_pages_ask_for_their_runs_replays_and_measurements(finished):
    for name, measured in (
        ("R5", {}),
        ("R6", {"drift": 2, "replay": 4}),
        ("R7", {"loss_overlap": 2, "replay": 4}),
    ):
        jobs, cells = planned(finished, f"results/{name}.md", **DEFAULT)
        assert jobs[name.lower()] == 1 and jobs["question"] == 0
        assert {rule: jobs[rule] for rule in measured} == measured
        assert all(cell.endswith("-s41") for cell in cells)


def test_the_page_is_made_and_its_replays_hold_every_step(finished):
    assert "T1 " in (finished / "results/smoke/probe/uat.md").read_text()
    for arm in ("vanilla", "projected"):
        files = sorted((finished / f"results/smoke/probe/{arm}_seed41").glob("step_*.jsonl.gz"))
        assert [path.name for path in files] == ["step_000.jsonl.gz", "step_001.jsonl.gz"]
        *samples, step = read_jsonl(files[0])
        assert len(samples) == 4 and all(set(row) >= SAMPLE for row in samples) and set(step) >= STEP
