"""The paper-scale config on a tiny random Qwen3: sharded folder, PEFT teacher, LeetCode rows, one code path.

Only sizes and paths differ from `config/qwen3-4b.yaml`; the data set is read from ../shared/data.
"""

import gzip
import os
import shutil
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
import torch
import yaml
from workspace import clone, planned, snakemake

from projected_grpo.files import read_jsonl
from projected_grpo.method.basis import Basis
from projected_grpo.model.small_tokenizer import train_tokenizer

TARGET = "results/qwen3-4b/Q10.md"
SAID = ("says", "shown", "figure", "contrasts")  # of Q10, which name rows that are not here
ROWS = Path(__file__).resolve().parents[3] / "shared" / "data" / "leetcode" / "problems.jsonl.gz"


def save_tiny_qwen3(folder, texts):
    """A random Qwen3 with the real configuration's features, in several shards, and a PEFT adapter beside it."""
    from peft import LoraConfig, get_peft_model
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    base, teacher = folder / "base", folder / "teacher"
    train_tokenizer(texts, base)
    config = Qwen3Config(
        vocab_size=768,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        tie_word_embeddings=True,
        max_position_embeddings=4096,
    )
    model = Qwen3ForCausalLM(config).to(torch.bfloat16)
    model.save_pretrained(base, max_shard_size="40KB")
    assert len(list(base.glob("*.safetensors"))) > 1
    modules = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    lora = LoraConfig(r=4, lora_alpha=8, target_modules=modules, init_lora_weights=False)
    get_peft_model(model, lora).save_pretrained(teacher)
    return base, teacher


@pytest.fixture(scope="module")
def paper(tmp_path_factory):
    """A clone in which Q10 is made at paper scale but for its sizes: the clone, its config files, the given models."""
    if not ROWS.exists():
        pytest.skip("the LeetCode rows of ../shared/data are not here")
    tmp_path = tmp_path_factory.mktemp("paper")
    folder = clone(tmp_path / "clone")
    _, teacher = save_tiny_qwen3(tmp_path, [row["prompt"][-1]["content"] for row in read_jsonl(ROWS)])
    shutil.copy(ROWS, tmp_path / ROWS.name)
    small = {
        "device": "cpu",
        "threads": 1,
        "seeds": [41, 42],
        "model": {"base": "~/base", "teacher": str(teacher), "problems": str(tmp_path / ROWS.name)},
        "pool": {"problems": 4, "samples": 4, "max_new": 12},
        "deployed": {"known": 4, "novel": 4, "plain": 4, "samples": 2},
        "grpo": {"max_new": 12, "prompts": 2, "presets": {"fast": {"steps": 2}}},
        "questions": str(tmp_path / "questions.yaml"),
        "bases": {"own_mode-s4": {"pairs": "own_mode", "solve_orth_m": 4}},
    }
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(small))
    questions = yaml.safe_load((folder / "config" / "questions.yaml").read_text())
    questions["Q10"]["rows"] += [
        {"name": "orth", "arm": "erase", "basis": "own_mode-s4"},
        {"name": "steer", "arm": "steer", "direction": "own_mode"},
        {"name": "advantage", "arm": "advantage", "direction": "random", "layer": 1},
    ]
    chosen = ("vanilla", "own_mode", "random V", "orth", "steer", "advantage")
    rows = [row for row in questions["Q10"]["rows"] if row["name"] in chosen]
    for row in rows:
        row.pop("place_in", None)  # no placebos here
    q10 = {key: value for key, value in questions["Q10"].items() if key not in SAID}
    q10["rows"] = rows
    (tmp_path / "questions.yaml").write_text(yaml.safe_dump({"Q10": q10}))
    configs = ("config/qwen3-4b.yaml", str(tmp_path / "small.yaml"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path))
        snakemake(folder, TARGET, configs=configs)
        yield folder, configs, tmp_path


def test_the_paper_scale_config_runs_end_to_end(paper):
    folder, configs, _ = paper
    results = folder / "results" / "qwen3-4b"
    table = pd.read_parquet(results / "Q10.parquet")
    assert table["n"].tolist() == [2] * 6 and (table["seeds"] == "41;42").all()
    pool = list(read_jsonl(results / "teacher_pool/qwen3-4b/step_000.jsonl.gz"))
    assert {row["mode"] for row in pool} == {"run_tests"} and len(pool) == 4
    assert "will be evaluated by calling a function called run_tests()" in pool[0]["prompt"]
    # One shared model: a random basis per seed, the extracted ones shared by the seeds.
    assert {path.stem for path in (results / "basis/qwen3-4b").iterdir()} == {
        "own_mode",
        "own_mode-s4",
        "random-s41",
        "random-s42",
    }
    steps = pd.read_parquet(results / "grpo/erase-own_mode-m0.125-s42/steps.parquet")
    assert len(steps) == 2 and steps["reward"].notna().all()
    assert (
        '"solve_orth_m": 4'
        in Basis.load(results / "basis/qwen3-4b/own_mode-s4.safetensors").metadata["knobs"]
    )
    for cell in ("steer-own_mode-m0.125-s42", "advantage-random-layer1-m0.125-s42"):
        assert len(pd.read_parquet(results / f"grpo/{cell}/steps.parquet")) == 2
    rollouts = pd.read_parquet(results / "grpo/advantage-random-layer1-m0.125-s42/rollouts.parquet")
    assert rollouts["concept"].notna().all() and rollouts["concept"].nunique() > 1
    # The seed decides the run alone: another first seed remakes neither the pool nor a basis.
    jobs, cells = planned(folder, TARGET, config=["--config", "seeds=[42]"], configs=configs)
    assert jobs == {"question": 1} and not cells


def swap(path, content):
    """Exchange a file's content; its size and time stay, as an edit in place or a restored backup has them."""
    stat = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def last_bit(data):
    return data[:-1] + bytes([data[-1] ^ 1])


EXCHANGED = {  # given file -> (its new content, rules that must run, rules that must not)
    "base/model-00002-of-*": (
        last_bit,
        {"given_base", "given_teacher", "svd", "basis", "teacher_pool", "grpo", "question"},
        set(),
    ),
    "base/tokenizer.json": (
        lambda data: data.replace(b'"<unk>"', b'"<unq>"') if b'"<unk>"' in data else data + b" ",
        {"svd", "basis", "teacher_pool", "grpo"},
        set(),
    ),
    "base/config.json": (lambda data: data + b"\n", {"svd", "basis", "teacher_pool", "grpo"}, set()),
    "teacher/adapter_model.safetensors": (
        last_bit,
        {"given_teacher", "teacher_pool", "grpo"},
        {"given_base", "svd", "basis"},
    ),
    "problems.jsonl.gz": (
        lambda data: data + gzip.compress(b"\n"),
        {"teacher_pool", "grpo"},
        {"svd", "basis"},
    ),
}


@pytest.mark.parametrize("name", EXCHANGED)
def test_an_exchanged_given_file_plans_what_depends_on_it(paper, name):
    folder, configs, given = paper
    change, must, must_not = EXCHANGED[name]
    (path,) = given.glob(name)
    content = path.read_bytes()
    assert change(content) != content
    swap(path, change(content))
    jobs, _ = planned(folder, TARGET, configs=configs)
    assert must <= set(jobs) and not must_not & set(jobs)
    swap(path, content)


def test_given_files_that_came_back_and_were_touched_plan_nothing(paper):
    folder, configs, given = paper
    for path in (*given.glob("base/*"), *given.glob("teacher/*"), given / ROWS.name):
        path.touch()
    assert planned(folder, TARGET, configs=configs) == (Counter(), set())
