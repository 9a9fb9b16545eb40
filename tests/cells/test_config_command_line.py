"""Broken configs on the command line: Snakemake itself ends with our one line, before any job."""

import pytest
from workspace import borrow_environment, clone, snakemake


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    folder = clone(tmp_path_factory.mktemp("command line") / "a clone")
    borrow_environment(folder)
    return folder


NOTICES = ("Using workflow specific profile", "Config file config/config.yaml is extended")  # Snakemake's own
BROKEN = [
    (
        "config/config.yaml",
        "device: cpu",
        "device: gpu",
        "config/config.yaml: device: 'gpu'; allowed: cpu, cuda",
    ),
    ("config/config.yaml", "device: cpu", "device: [cpu", "config/config.yaml:10: not YAML ("),
    ("config/smoke.yaml", "seeds: [41]", "seeds: [41", "config/smoke.yaml:5: not YAML ("),
    (
        "config/smoke.yaml",
        "steps: 3",
        "stops: 3",
        "config/smoke.yaml: grpo.presets.fast.stops: unknown key; ",
    ),
    (
        "config/questions-smoke.yaml",
        "basis: moral }",
        "basis: morals }",
        "config/questions-smoke.yaml: Q10.rows[2].basis: 'morals' is no basis and no pair set; ",
    ),
    (
        "config/pairs/moral.yaml",
        "  clean:",
        "  klean:",
        "config/pairs/moral.yaml: pair 1: unknown key 'klean'; ",
    ),
]


@pytest.mark.parametrize("name, old, new, expected", BROKEN, ids=lambda x: None)
def test_one_line_before_any_job(copy, name, old, new, expected):
    path = copy / name
    sound = path.read_text()
    assert old in sound
    path.write_text(sound.replace(old, new, 1))
    try:
        done = snakemake(copy, "results/smoke/Q10.md", wrapper=True, check=False)
    finally:
        path.write_text(sound)
    assert done.returncode == 1
    said = (done.stdout + done.stderr).splitlines()
    error = [line for line in said if not line.startswith(NOTICES)]
    assert len(error) == 1 and error[0] == said[-1], said
    assert error[0].startswith("error: ") and expected in error[0]
    assert not (copy / "results").exists()
