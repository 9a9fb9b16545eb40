"""What a run trained leaves the project as a folder that transformers and PEFT load."""

import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

from projected_grpo.cli import main
from projected_grpo.commands import export
from projected_grpo.commands.trained import read_trained
from projected_grpo.measures.measure import MEASURES

LORA = "erase-own_mode_lora-lora-m0.125-s41"
ANTIPASTO = "route-own_mode-final-m0.125-s41"


@pytest.fixture
def grpo(finished):
    return finished / "results/smoke/grpo"


@pytest.mark.parametrize("cell", [LORA, ANTIPASTO])
def test_both_folders_are_the_policy_that_is_deployed(grpo, tmp_path, cell):
    assert main(["export", str(grpo / cell), str(tmp_path / "adapter")]) == 0
    assert main(["export", str(grpo / cell), str(tmp_path / "whole"), "--merged"]) == 0
    trained = read_trained(grpo / cell, None)
    whole = AutoModelForCausalLM.from_pretrained(tmp_path / "whole", dtype=torch.float32)
    base = AutoModelForCausalLM.from_pretrained(trained.base, dtype=torch.float32)
    adapted = PeftModel.from_pretrained(base, tmp_path / "adapter").merge_and_unload()
    changed = 0.0
    for name, W in trained.policy.adapter.merge(trained.policy.theta).items():
        changed += float((W - trained.policy.base.weights[f"{name}.weight"]).abs().max())
        for model in (whole, adapted):
            torch.testing.assert_close(model.get_parameter(f"{name}.weight"), W, atol=1e-4, rtol=1e-4)
    assert changed > 0

    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "whole")
    chat = [{"role": "user", "content": "Write code."}]
    asked = tokenizer.apply_chat_template(
        chat, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    assert asked["input_ids"][0].tolist() == trained.policy.tokenizer.encode_chat(chat)
    assert whole.generation_config.eos_token_id == [trained.policy.tokenizer.end]
    written = whole.generate(**asked, max_new_tokens=4)
    assert written.shape[1] > asked["input_ids"].shape[1]


def test_the_card_has_the_rates_of_the_run(grpo, tmp_path):
    main(["export", str(grpo / LORA), str(tmp_path / "out")])
    card = (tmp_path / "out/README.md").read_text()
    hack = pd.read_parquet(grpo / LORA / "steps.parquet")["hack_s"].tail(5).mean()
    assert f"# {LORA}" in card and f"| {hack:.3f} |" in card
    assert all(
        f"| {MEASURES[name].words} |" in card for name in ("known_hack", "known_honest", "plain_solve")
    )


@pytest.mark.parametrize("base", ["own", "elsewhere"])
@pytest.mark.parametrize("how", [[], ["--merged"]])
def test_what_the_card_says_loads_the_folder_wherever_it_lies(grpo, tmp_path, monkeypatch, how, base):
    if base == "elsewhere":
        shutil.copytree(read_trained(grpo / LORA, None).base, tmp_path / "away")
        how = [*how, "--base", str(tmp_path / "away")]
    assert main(["export", str(grpo / LORA), str(tmp_path / "mine"), *how]) == 0
    if base == "elsewhere":
        shutil.rmtree(tmp_path / "away")
    (tmp_path / "mine").rename(tmp_path / "another name")
    monkeypatch.chdir(tmp_path / "another name")
    card = Path("README.md").read_text()
    found = {}
    exec(re.search(r"```python\n(.*?)```", card, re.S)[1], found)
    assert sum(weight.numel() for weight in found["model"].parameters()) > 100_000
    written = "".join(path.read_text() for path in Path().glob("*.*") if path.suffix in (".json", ".md"))
    assert str(grpo.parents[1]) not in written and str(tmp_path) not in written


def test_chat_asks_a_problem_and_grades_the_answers(grpo, capsys):
    problem = str(pd.read_parquet(grpo / LORA / "rollouts.parquet")["problem_id"][0])
    ask = ["chat", str(grpo / LORA), "--problem", problem, "--samples", "2", "--max-new", "8"]
    assert main(ask) == 0
    said = capsys.readouterr().out
    assert "class Solution" in said and said.count("\n--- ") == 2
    assert main(ask) == 0 and capsys.readouterr().out == said
    assert main([*ask[:3], "no such"]) == 2
    assert "no problem 'no such'" in capsys.readouterr().err


def test_an_export_that_is_broken_off_leaves_nothing(grpo, tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(export, "write_generation_config", stop)
    assert main(["export", str(grpo / LORA), str(tmp_path / "out")]) == 130
    assert not list(tmp_path.iterdir())


def test_numbers_that_nothing_can_be_asked_with_are_one_line(capsys):
    for words in ("chat RUN --samples 0", "chat RUN --max-new 0", "chat RUN --seed -1"):
        assert main(words.split()) == 2
        error = capsys.readouterr().err
        assert words.split()[2] in error and "or more" in error and error.count("\n") == 1


def made_by_another_version(path):
    record = json.loads(path.read_text())
    del record["digest"]
    record["settings"]["setting"]["gone"] = 1
    path.write_text(json.dumps(record))


def exchange_base_and_teacher(run):
    """Put another model of the same sizes where the run's base was."""
    model = run.parents[1] / "models/small-s41"
    shutil.rmtree(model / "base")
    (model / "teacher").rename(model / "base")


@pytest.mark.parametrize(
    "spoil, said",
    [
        (lambda run: (run / "run.json").unlink(), "RUN is a folder results/grpo/CELL"),
        (lambda run: (run / "run.json").write_text("{}"), "no record of a run of this pipeline"),
        (lambda run: shutil.rmtree(run.parents[1] / "models"), "allowed: the run's base by --base"),
        (
            lambda run: made_by_another_version(run / "run.json"),
            "run.json: settings.setting.gone: of another",
        ),
        (lambda run: (run / "adapter.safetensors").unlink(), "adapter.safetensors"),
        (lambda run: (run / "steps.parquet").unlink(), "no whole run (missing)"),
        (lambda run: (run / "deployed.parquet").unlink(), "no whole run (no deployed.parquet)"),
        (lambda run: (run.parents[2] / "out").mkdir(), "exists already, allowed: a new folder"),
        (exchange_base_and_teacher, "base: another base than "),
    ],
)
def test_what_cannot_be_exported_is_one_line(grpo, tmp_path, capsys, spoil, said):
    run = tmp_path / "results/grpo" / LORA
    shutil.copytree(grpo / LORA, run)
    # Without records: nothing to check against.
    shutil.copytree(grpo.parent / "models", tmp_path / "results/models")
    spoil(run)
    assert main(["export", str(run), str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert not list((tmp_path / "out").glob("*"))
