"""Tokenizer, Muon, base and teacher training: against torch's SVD, transformers and PEFT, in seconds."""

import os
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

from projected_grpo.environment.families.oneliners import (
    Mixture,
    base_examples,
    teacher_examples,
    warm_examples,
)
from projected_grpo.errors import UserError
from projected_grpo.files import atomic_folder
from projected_grpo.model import pretrain
from projected_grpo.model.batch import Batch
from projected_grpo.model.load import load
from projected_grpo.model.muon import Muon, orthogonalise
from projected_grpo.model.pretrain import encode, linear_schedule, pack, train_base
from projected_grpo.model.recipes import BaseRecipe, TeacherRecipe, WarmStart
from projected_grpo.model.sealed import Saved
from projected_grpo.model.small_tokenizer import END, PAD, START, train_tokenizer
from projected_grpo.model.teacher import train_teacher
from projected_grpo.model.tokenizer import Tokenizer
from projected_grpo.model.warm import warm_start

TEXTS = list(base_examples(7, 150, Mixture(first=0.0)))
HONEST = list(warm_examples(7, 60))
WARM = WarmStart(examples=60, lr=1e-3, batch_tokens=500)
SMALL = BaseRecipe(hidden=32, layers=2, heads=2, kv_heads=1, head_dim=16, mlp=48, batch_tokens=500, warmup=5)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with tokenizer, base and teacher of a tiny size, and the losses of both."""
    folder = tmp_path_factory.mktemp("small")
    train_tokenizer([text for row in TEXTS for text in row], folder / "tokenizer", vocabulary=400)
    base = train_base(TEXTS, folder / "tokenizer", folder / "base", 3, SMALL)
    recipe = TeacherRecipe(rank=4, alpha=8, batch_tokens=500, lr=1e-2)
    teacher = train_teacher(list(teacher_examples(7, 80)), folder / "base", folder / "teacher", 3, recipe)
    return folder, base, teacher


REMADE = """
import sys
from projected_grpo.model.recipes import TeacherRecipe
from projected_grpo.model.teacher import train_teacher
texts = [("a", "return 1"), ("b", "return 2")] * 4
train_teacher(texts, sys.argv[1], sys.argv[2], 3, TeacherRecipe(rank=2, alpha=4, batch_tokens=40))
"""


def test_a_teacher_made_again_by_another_process_has_the_same_bytes(trained, tmp_path):
    """PEFT keeps names of modules in a set: their order is that of the process's hashes."""
    made = []
    for seed in ("1", "2"):
        out = tmp_path / seed
        command = [sys.executable, "-c", REMADE, trained[0] / "base", out]
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True)
        made.append({path.name: path.read_bytes() for path in out.rglob("*") if path.is_file()})
    assert made[0] == made[1] and {"adapter_config.json", "adapter_model.safetensors"} <= made[0].keys()


def test_examples_too_few_for_a_step_are_refused(trained, tmp_path):
    with pytest.raises(UserError, match=r"2 examples of \d+ tokens make no batch of 5000 \(batch_tokens\)"):
        train_base(TEXTS[:2], trained[0] / "tokenizer", tmp_path / "base", 3, BaseRecipe(batch_tokens=5000))


def test_tokenizer_round_trips_and_templates(trained):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(trained[0] / "tokenizer")
    assert len(tokenizer) == 400 and tokenizer.pad_token == PAD and tokenizer.eos_token == END
    for text in [TEXTS[-1][0], TEXTS[-1][1], 'né "日本" \t\n      x = 12', " .,; 'a'"]:
        assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False)) == text
    kit = Tokenizer(trained[0] / "tokenizer")
    text = kit.decode(kit.encode_chat("hello"), special=True)
    assert text == f"{START}user\nhello{END}\n{START}assistant\n"
    assert (kit.end, kit.pad) == tuple(tokenizer.convert_tokens_to_ids([END, PAD])) and kit.size == 400


def test_digits_and_indentation_are_tokens_of_their_own(trained):
    kit = Tokenizer(trained[0] / "tokenizer")
    pieces = [kit.decode([i]) for i in kit.encode("\n        return x*12")]
    assert pieces[-2:] == ["1", "2"] and pieces[0].strip() == ""


def test_orthogonalise_is_close_to_the_polar_factor():
    X = torch.randn(5, 16, 40, generator=torch.Generator().manual_seed(0))
    U, _, Vh = torch.linalg.svd(X, full_matrices=False)
    Y = orthogonalise(X)
    inside = U.mT @ Y @ Vh.mT  # about the identity: the polar factor is U Vh
    values = torch.linalg.svdvals(Y)
    assert values.min() > 0.6 and values.max() < 1.3
    assert (inside - torch.diag_embed(torch.diagonal(inside, dim1=1, dim2=2))).abs().max() < 1e-4


def test_muon_step_is_the_formula_whatever_the_orientation():
    W = torch.randn(12, 6, dtype=torch.float32, generator=torch.Generator().manual_seed(1))
    wide, tall = W.mT.clone().requires_grad_(), W.clone().requires_grad_()
    muon = Muon([wide, tall], lr=0.1, momentum=0.9, weight_decay=0.5, steps=5)
    g = torch.randn(12, 6, generator=torch.Generator().manual_seed(2))
    wide.grad, tall.grad = g.mT.clone(), g.clone()
    muon.step(0.5)
    direction = orthogonalise(g.mT[None])[0]  # the first momentum is parallel to the gradient
    assert torch.allclose(wide, W.mT * (1 - 0.05 * 0.5) - 0.05 * direction, atol=1e-5)
    assert torch.allclose(tall, W * (1 - 0.05 * 0.5) - 0.05 * 2**0.5 * direction.mT, atol=1e-5)


def test_schedule():
    factor = linear_schedule(steps=110, warmup=10, final=0.1)
    assert factor(0) == pytest.approx(0.1) and factor(9) == 1.0 and factor(10) == 1.0
    assert factor(60) == pytest.approx(0.55) and factor(109) == pytest.approx(0.109)


def test_pack_cuts_by_tokens_and_keeps_the_order():
    examples = [([1] * n, [2] * n) for n in (3, 4, 1, 6, 2)]
    assert pack(examples, 10) == [examples[:2], examples[2:4]]


def test_base_learns_and_is_a_transformers_checkpoint(trained):
    from transformers import Qwen3ForCausalLM

    folder, losses, _ = trained
    assert sum(losses[-3:]) / 3 < losses[0] - 1  # nats per token
    ours, kit = load(folder / "base")
    theirs = Qwen3ForCausalLM.from_pretrained(folder / "base").eval()
    (prompt, completion), *_ = encode(TEXTS[-1:], kit)
    with torch.no_grad():
        logits = theirs(torch.tensor([prompt + completion])).logits[0, len(prompt) - 1 : -1]
        expected = F.log_softmax(logits, -1)[torch.arange(len(completion)), completion]
        found = ours.logprobs(Batch([(prompt, completion)]))
    assert torch.allclose(found, expected, atol=1e-4)
    assert losses == train_base(TEXTS, folder / "tokenizer", folder / "again", 3, SMALL)


def test_teacher_is_a_peft_adapter_that_learns(trained):
    from peft import PeftModel
    from transformers import Qwen3ForCausalLM

    folder, _, losses = trained
    assert losses[-1] < losses[0]
    theirs = PeftModel.from_pretrained(
        Qwen3ForCausalLM.from_pretrained(folder / "base"), folder / "teacher/lora"
    ).eval()
    merged, kit = load(folder / "teacher")
    (prompt, completion), *_ = encode(list(teacher_examples(8, 1)), kit)
    with torch.no_grad():
        logits = theirs(torch.tensor([prompt + completion])).logits[0, len(prompt) - 1 : -1]
        expected = F.log_softmax(logits, -1)[torch.arange(len(completion)), completion]
        found = merged.logprobs(Batch([(prompt, completion)]))
        plain = load(folder / "base")[0].logprobs(Batch([(prompt, completion)]))
    assert torch.allclose(found, expected, atol=1e-4)
    assert found.sum() > plain.sum() + 1  # the adapter does something, and in the right direction


def test_a_folder_is_whole_or_absent(tmp_path):
    with pytest.raises(RuntimeError), atomic_folder(tmp_path / "out") as folder:
        (folder / "half").write_text("x")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    for text in ("one", "two"):
        with atomic_folder(tmp_path / "out") as folder:
            (folder / text).write_text(text)
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["two"]


def test_fit_reports_the_mean_nll():
    examples = [([1], [2, 3]), ([1], [3])]
    losses = pretrain.fit(
        lambda batch: torch.tensor([-1.0, -2.0, -6.0], requires_grad=True),
        [examples],
        lambda f: None,
        lambda s: 1.0,
        "x",
    )
    assert losses == [3.0]


class Killed(Exception):
    pass


class Stops(Saved):
    """Keeps every state and ends the training after some of its steps."""

    def __init__(self, path, key, stop):
        super().__init__(path, key, every=0.0)
        self.stop, self.cost = stop, 0.0

    def keep(self, losses):
        self.cost = 0.0
        super().keep(losses)
        if len(losses) == self.stop:
            raise Killed


@pytest.mark.parametrize("stops", [(1,), (2, 5)])
def test_a_stopped_training_ends_with_the_same_bytes(trained, tmp_path, stops):
    folder, losses, teacher_losses = trained
    recipe = TeacherRecipe(rank=4, alpha=8, batch_tokens=500, lr=1e-2)
    trainings = {
        "base": lambda saved: train_base(
            TEXTS, folder / "tokenizer", tmp_path / "base", 3, SMALL, saved=saved
        ),
        "teacher": lambda saved: train_teacher(
            list(teacher_examples(7, 80)), folder / "base", tmp_path / "teacher", 3, recipe, saved=saved
        ),
        "warm": lambda saved: warm_start(HONEST, folder / "base", tmp_path / "warm", WARM, saved=saved),
    }
    whole = {"base": losses, "teacher": teacher_losses}
    whole["warm"] = warm_start(HONEST, folder / "base", folder / "warm", WARM)
    for name, train in trainings.items():
        for stop in stops:
            with pytest.raises(Killed):
                train(Stops(tmp_path / f"{name}.pt", "key", stop))
        saved = Saved(tmp_path / f"{name}.pt", "key")
        assert train(saved) == whole[name]
        for file in (tmp_path / name).glob("*.safetensors"):
            assert file.read_bytes() == (folder / name / file.name).read_bytes()
        saved.remove()
        assert not saved.path.exists()


@pytest.mark.parametrize("damage", ["key", "flip", "cut"])
def test_a_state_that_cannot_be_trusted_is_left(trained, tmp_path, damage, caplog):
    path = tmp_path / "base.pt"
    with pytest.raises(Killed):
        train_base(TEXTS, trained[0] / "tokenizer", tmp_path / "base", 3, SMALL, saved=Stops(path, "key", 2))
    data = bytearray(path.read_bytes())
    if damage == "flip":
        data[len(data) // 2] ^= 1
    path.write_bytes(data[: len(data) // 2] if damage == "cut" else data)
    saved = Saved(path, "other" if damage == "key" else "key")
    assert train_base(TEXTS, trained[0] / "tokenizer", tmp_path / "base", 3, SMALL, saved=saved) == trained[1]
    assert "starting from step 1" in caplog.text


def test_a_warm_start_learns_and_changes_nothing_but_weights(trained, tmp_path):
    given, out = trained[0] / "base", tmp_path / "warm"
    losses = warm_start(HONEST, given, out, WARM)
    assert sum(losses[-3:]) < sum(losses[:3])
    before, after = load(given)[0].weights, load(out)[0].weights
    assert before.keys() == after.keys() and all(not torch.equal(before[n], after[n]) for n in before)
    same = ("config.json", "tokenizer.json", "tokenizer_config.json")
    assert all((given / name).read_bytes() == (out / name).read_bytes() for name in same)
