"""The pool's rows against a fresh forward, the grader and the recorded format."""

import shutil

import pytest
import torch

from projected_grpo.digests import file_digest
from projected_grpo.environment.families.oneliners import TAUGHT, base_examples
from projected_grpo.environment.families.oneliners import problems as make_problems
from projected_grpo.environment.grade import Grader
from projected_grpo.environment.problems import parse_problem
from projected_grpo.environment.prompts import messages_for
from projected_grpo.errors import UserError
from projected_grpo.files import read_jsonl, write_json
from projected_grpo.model.batch import Batch
from projected_grpo.model.load import load
from projected_grpo.model.pretrain import train_base
from projected_grpo.model.recipes import BaseRecipe
from projected_grpo.model.small_tokenizer import train_tokenizer
from projected_grpo.training.teacher_pool import make_pool, read_pool

KEYS = {"problem_id", "sample_id", "prompt", "completion", "hacked", "gt_pass", "fmt_ok", "reward"}
PROBLEMS = [parse_problem(row, "row") for row in make_problems(3, 4, TAUGHT)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A model of a few steps, its pool of 4 problems x 3 samples, and the pool's rows."""
    folder = tmp_path_factory.mktemp("pool")
    texts = list(base_examples(7, 200))
    train_tokenizer([text for row in texts for text in row], folder / "tokenizer", vocabulary=400)
    small = BaseRecipe(hidden=32, layers=1, heads=2, kv_heads=1, head_dim=16, mlp=48, batch_tokens=500)
    train_base(texts, folder / "tokenizer", folder / "base", 3, small)
    model, tokenizer = load(folder / "base")
    done = []
    with Grader(PROBLEMS, workers=1) as grader:
        rates = make_pool(model, tokenizer, PROBLEMS, grader, folder / "pool", 3, 24, 41, done.append)
        make_pool(model, tokenizer, PROBLEMS, grader, folder / "again", 3, 24, 41)
        rows = [list(read_jsonl(path)) for path in sorted((folder / "pool").iterdir())]
        verdicts = grader.grade([(r["problem_id"], r["mode"], r["completion"]) for g in rows for r in g])
    return folder, model, tokenizer, rows, verdicts, rates, done


def test_one_file_per_problem_with_the_recorded_keys(made):
    folder, _, tokenizer, rows, _, _, done = made
    assert [p.name for p in sorted((folder / "pool").iterdir())] == [
        f"step_{i:03d}.jsonl.gz" for i in range(4)
    ]
    assert sum(done) == 4
    for problem, group in zip(PROBLEMS, rows, strict=True):
        assert [row["sample_id"] for row in group] == [0, 1, 2]
        for row in group:
            assert row.keys() >= KEYS | {"mode", "logprobs", "tokens", "channel", "exploited", "error"}
            assert (row["problem_id"], row["mode"]) == (problem.id, problem.mode)
            assert tokenizer.encode(row["prompt"]) == tokenizer.encode_chat(messages_for(problem))
            assert row["completion"] == tokenizer.decode(row["tokens"])


def test_logprobs_are_those_of_a_fresh_forward(made):
    _, model, tokenizer, rows, *_ = made
    for row in (row for group in rows for row in group):
        with torch.no_grad():
            found = model.logprobs(Batch([(tokenizer.encode(row["prompt"]), row["tokens"])]))
        assert torch.allclose(found, torch.tensor(row["logprobs"]), atol=1e-4)


def test_verdicts_are_the_graders(made):
    flat = [row for group in made[3] for row in group]
    for row, verdict in zip(flat, made[4], strict=True):
        assert {key: row[key] for key in verdict} == verdict
    assert made[5]["hacked"] == sum(row["hacked"] for row in flat) / len(flat)


def test_a_seed_fixes_the_pool(made):
    for path in (made[0] / "pool").iterdir():
        assert path.read_bytes() == (made[0] / "again" / path.name).read_bytes()


def test_a_pool_file_that_is_not_the_one_made_is_named(made, tmp_path):
    folder, _, tokenizer, rows, *_ = made
    pool = tmp_path / "pool"
    shutil.copytree(folder / "pool", pool)
    write_json(pool / "pool.json", {path.name: file_digest(path) for path in pool.glob("step_*")})
    shutil.copy(pool / "step_000.jsonl.gz", pool / "step_009.jsonl.gz")  # of a larger pool before: not read
    read = read_pool(pool, tokenizer)
    assert [[row.row for row in group] for group in read.values()] == rows
    shutil.copy(pool / "step_001.jsonl.gz", pool / "step_002.jsonl.gz")
    with pytest.raises(UserError, match=r"step_002\.jsonl\.gz: not the file .* delete .*pool\.json"):
        read_pool(pool, tokenizer)
    (pool / "step_002.jsonl.gz").unlink()
    with pytest.raises(UserError, match=r"step_002\.jsonl\.gz: no such file; delete .*pool\.json"):
        read_pool(pool, tokenizer)
