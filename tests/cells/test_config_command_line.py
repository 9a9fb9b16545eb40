"""Broken configs on the command line: Snakemake itself ends with our one line, before any job."""

import re
from pathlib import Path

import pytest
from broken import matches
from mutations import bomb
from workspace import borrow_environment, clone, planned, snakemake

from projected_grpo.errors import UserError
from projected_grpo.wrapper.command_line import check_config


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    folder = clone(tmp_path_factory.mktemp("command line") / "a clone")
    borrow_environment(folder)
    return folder


NOTICES = ("Using workflow specific profile", "Config file config/config.yaml is extended")  # Snakemake's own
# File, what is broken in it, how, and what follows the file's name in the line.
BROKEN = [
    ("config/config.yaml", "device: cpu", "device: gpu", ": device: 'gpu'; allowed: cpu, cuda"),
    ("config/config.yaml", "device: cpu", "device: [cpu", ":11: not YAML ("),
    ("config/smoke.yaml", "seeds: [41]", "seeds: [41", ":5: not YAML ("),
    ("config/smoke.yaml", "steps: 3", "stops: 3", ": grpo.presets.fast.stops: unknown key; "),
    ("config/config.yaml", "\nseeds:", "\nsedes:", ": sedes: unknown key; "),
    ("config/smoke.yaml", "seeds: [41]", "seeds: [041]", ":4: '041' would be read as 33, "),
    ("config/smoke.yaml", "seeds: [41]", "\n".join(bomb(lists=False)), ":.*more than 200000 values, aliases"),
    (
        "config/questions-smoke.yaml",
        "basis: moral }",
        "basis: morals }",
        ": Q10.rows[2].basis: 'morals' is no basis and no pair set; ",
    ),
    ("config/pairs/moral.yaml", "  clean:", "  klean:", ": pair 1: unknown key 'klean'; "),
]


def error(copy, *arguments):
    """Return the one line, besides Snakemake's notices, of a call that ends before any job."""
    done = snakemake(copy, *arguments, wrapper=True, check=False)
    said = (done.stdout + done.stderr).splitlines()
    lines = [line for line in said if not line.startswith(NOTICES)]
    assert done.returncode == 1 and lines == said[-1:] and lines[0].startswith("error: "), said
    return lines[0].removeprefix("error: ")


@pytest.mark.parametrize("name, old, new, expected", BROKEN, ids=lambda x: None)
def test_one_line_before_any_job(copy, name, old, new, expected):
    path = copy / name
    sound = path.read_text()
    assert old in sound
    path.write_text(sound.replace(old, new, 1))
    try:
        assert matches(error(copy, "results/smoke/Q10.md"), f"{name}{expected}")
    finally:
        path.write_text(sound)
    assert not (copy / "results").exists()


def test_a_gpu_is_asked_for_before_any_job_where_one_is_needed(copy, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    for _ in range(2):  # the first leaves no lock
        done = snakemake(copy, "results/smoke/Q10.md", "--config", "device=cuda", wrapper=True, check=False)
        last = (done.stdout + done.stderr).splitlines()[-1]
        assert re.fullmatch(
            r"error: device: 'cuda', but no GPU is here for \w+; allowed: cpu, or a cluster", last
        )
        assert done.returncode == 1 and not list((copy / "results").rglob("*.log"))
    done = snakemake(copy, "results/smoke/Q10.md", "--config", "device=cuda", "-n", wrapper=True)
    assert "grpo" in done.stdout + done.stderr  # planned for another machine


def test_nested_numbers_of_the_command_line_arrive_as_numbers(copy):
    more = "grpo={lr: 0.1, presets: {fast: {steps: 5, group: 16}}}"
    _, cells = planned(copy, "results/smoke/Q10.md", config=["--config", more, "seeds=[41,42]"])
    assert {cell.rpartition("-")[2] for cell in cells} == {"s41", "s42"}
    said = error(copy, "-n", "report", "--config", "grpo={lr: much}")
    assert said == "--config: grpo.lr: 'much', allowed: a number > 0 and <= 100"
    said = error(copy, "-n", "report", "--config", "grpo.presets.fast.steps=5")
    nested = "'grpo={presets: {fast: {steps: 5}}}'"
    assert said == f"--config grpo.presets.fast.steps=5: a key inside another, write --config {nested}"


@pytest.mark.parametrize(
    "word", ["a b=1", "seeds =1", "see-ds=1", "=1", "x=1", "ä=1", "a..b=1", ".=1", "a{=1"]
)
def test_a_key_of_the_command_line_that_can_be_none_is_refused(word):
    with pytest.raises(UserError, match=r"^--config .*allowed: ") as caught:
        check_config([word])
    assert "\n" not in str(caught.value)


# One that no config may have, and one that this one has not.
@pytest.mark.parametrize("word", ["see-ds=1", "A" * 99 + "=1"])
def test_a_key_of_the_command_line_that_is_none_is_one_line(copy, word):
    said = error(copy, "-n", "report", "--config", word)
    assert said.startswith("--config") and "allowed: " in said


SMOKE = "results/smoke"


UNKNOWN = [
    f"{SMOKE}/grpo/vanilla-m0.125-s99/steps.parquet",
    f"{SMOKE}/models/small-s99/svd.safetensors",
    f"{SMOKE}/basis/small-s41/none.safetensors",
    f"{SMOKE}/basis/small-s99/own_mode.safetensors",
    f"{SMOKE}/clean/small-s99/axes.safetensors",
    f"{SMOKE}/teacher_pool/small-s41-exit_code/step_000.jsonl.gz",
    f"{SMOKE}/probe/vanilla_seed99/step_000.jsonl.gz",
    f"{SMOKE}/probe/small-s41/none/vanilla/step_000.jsonl.gz",
    f"{SMOKE}/probe/small-s99/own_mode/vanilla/step_000.jsonl.gz",
    f"{SMOKE}/detector/none.parquet",
    f"{SMOKE}/figures/Q99",
    f"{SMOKE}/Q99.md",
    f"{SMOKE}/{{page}}.md",
    f"{SMOKE}/",
    "a b",
]
KNOWN = [
    f"{SMOKE}/Q10.md",
    f"{SMOKE}/grpo/erase-own_mode-m0.125-s41/run.json",
    f"{SMOKE}/figures/Q10",
    "report",
]


ASKING = """
include: "Snakefile"

def is_found(target):
    try:
        return is_made(target)
    except SystemExit:  # with a line of its own
        return False

print("made:", [each for each in {every!r} if is_found(each)])
"""


def test_no_target_with_an_unknown_name_in_it_is_made(copy):
    (copy / "asking.smk").write_text(ASKING.format(every=[*UNKNOWN, *KNOWN]))
    done = snakemake(copy, "-s", "asking.smk", "-n", KNOWN[0])
    assert f"made: {KNOWN}" in done.stdout + done.stderr


@pytest.mark.parametrize("target", [UNKNOWN[0], "a b"])
def test_a_target_that_nothing_makes_is_one_line(copy, target):
    said = error(copy, "-n", target)
    assert "allowed: " in said or "did you mean" in said


@pytest.mark.parametrize("option", ["-R", "--until", "--omit-from"])
def test_a_rule_that_there_is_not_is_one_line(copy, option):
    assert error(copy, "-n", option, "grppo") == "grppo: nothing makes this file; did you mean grpo?"


@pytest.mark.parametrize(
    "config, expected",
    [("", None), ("config: {}", "error: config: results: missing; required: results, seeds, ")],
    ids=["its own", "an empty one"],
)
def test_a_module_without_a_config_has_its_own_and_one_with_an_empty_one_is_refused(copy, config, expected):
    (copy / "outer.smk").write_text(
        f'module inner:\n    snakefile: "Snakefile"\n    {config}\n\nuse rule * from inner as inner_*\n'
    )
    done = snakemake(copy, "-s", "outer.smk", "-n", "inner_all", configs=(), check=False, wrapper=True)
    said = (done.stdout + done.stderr).splitlines()
    if expected is None:
        assert done.returncode == 0
    else:
        assert done.returncode == 1 and said[-1].startswith(expected)


def test_the_page_of_keys_is_that_of_the_shipped_config():
    from projected_grpo.commands.schemas import reference

    page = Path(__file__).resolve().parents[2] / "docs" / "config.md"
    assert page.read_text() == reference(), "`.venv/bin/projected-grpo schemas` writes it"
