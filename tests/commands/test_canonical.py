"""`projected-grpo canonical`: base and adapter from the command line."""

import torch
from given import adapter, checkpoint

from projected_grpo.cli import main
from projected_grpo.model.load import load_weights


def test_a_base_and_an_adapter_become_canonical_folders(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    checkpoint(tmp_path / "given", "qwen2")
    adapter(tmp_path / "given", tmp_path / "adapter")
    assert main(["canonical", "given", "base"]) == 0
    teacher = ["canonical", "adapter", "teacher", "--base", "base"]
    assert main(teacher) == 0 and "log-probabilities differ by at most" in capsys.readouterr().out
    base, merged = (load_weights(tmp_path / name) for name in ("base", "teacher"))
    changed = {name for name, W in base.weights.items() if not torch.equal(W, merged.weights[name])}
    assert changed == {f"{name}.weight" for name in base.linears if name.endswith(("v_proj", "gate_proj"))}
    assert main(teacher) == 2 and "exists already" in capsys.readouterr().err
    assert main(["canonical", "adapter", "out"]) == 2
    said = capsys.readouterr().err
    assert "a folder without config.json" in said and said.count("\n") == 1
