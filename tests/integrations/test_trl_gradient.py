"""The gradient that TRL's optimizer steps on is the pipeline's, for the same rollouts, rewards and axes."""

import numpy as np
import pytest
import torch
from optional_packages import need
from peft import LoraConfig, get_peft_model
from tiny import CONFIG, tiny_adapter, tiny_model
from trl_step import (
    MAX_NEW,
    PAIRS,
    PROMPTS,
    REWARDS,
    ROWS,
    Recorder,
    load,
    make_trainer,
    tokenizer,
    write_checkpoint,
)

from projected_grpo import arms
from projected_grpo.antipasto import attach
from projected_grpo.cells.hyper import Training
from projected_grpo.integrations.adapted import adapted
from projected_grpo.integrations.pair_basis import pair_gradients
from projected_grpo.method.basis import Basis, content_hash, random_axes
from projected_grpo.method.gradients import Sample, sample_gradients
from projected_grpo.method.lora import LoRA
from projected_grpo.method.loss import advantages
from projected_grpo.method.optimizer import AdamW
from projected_grpo.method.pairs import pair_set
from projected_grpo.method.policy import Policy
from projected_grpo.training.graded import Graded
from projected_grpo.training.gradient import policy_gradient
from projected_grpo.training.rollouts import Group
from projected_grpo.training.step import update
from projected_grpo.trl import project

pytestmark = need("trl")
GRPO = {
    "steps": 1, "group": 4, "prompts": 2, "max_new": MAX_NEW, "lr": 0.1, "betas": (0.9, 0.999), "weight_decay": 0.0,
    "clip": None, "warmup": 0.1, "beta": 0.0, "micro_batch_tokens": 10_000, "teacher_steps": None,
}  # fmt: skip


class Seen(AdamW):
    """Keeps what it is to step on."""

    def direction(self, grads):
        self.grads = grads
        return super().direction(grads)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_checkpoint(tmp_path_factory.mktemp("tiny"))


def random_basis(sizes, k=3, **facts):
    rng = np.random.default_rng(5)
    V = {name: random_axes(k, size, rng) for name, size in sizes.items()}
    return Basis(V, {name: torch.ones(k) for name in V}, facts)


def antipasto_basis():
    model = tiny_model()
    adapter = tiny_adapter(model)
    return random_basis(adapter.sizes, adapter="antipasto", model_hash=content_hash(adapter.weights))


def pipeline_step(adapter, basis, clip=None, **knobs):
    """Return the gradient before the arm and the one that the pipeline's optimizer is given."""
    model = tiny_model()
    policy = Policy(model, None, adapter, adapter.zeros())
    encode = tokenizer().encode
    groups = [
        Group(None, encode(PROMPTS[i]), [Graded(row, None, {}) for row in ROWS[4 * i : 4 * i + 4]], [])
        for i in range(2)
    ]
    A = [advantages(torch.tensor(REWARDS[4 * i : 4 * i + 4])).tolist() for i in range(2)]
    gradient = policy_gradient(policy, policy.merged(), groups, A, Training(**GRPO), False).clipped(clip)
    arm = arms.load("erase")
    held = arm(arm.Knobs(basis="x", **knobs), arms.Given(41, policy, None, basis))
    optimizer = Seen(policy.theta, (0.9, 0.999), 0.0)
    row = update(policy, held, optimizer, gradient, 0.1)
    return gradient.total, optimizer.grads, row


def trl_step(model, folder, basis, how=(), **options):
    """Return what TRL's optimizer stepped on, a vector a module, and what it logged."""
    recorder = Recorder()
    trainer = make_trainer(model, folder / "out", [recorder, project(basis, **dict(how))], **options)
    trainer.train()
    found = adapted(model)
    names = {id(p): n for n, p in model.named_parameters()}
    return found.flat(
        recorder.gradients[0].get(names[id(p)]) for p in found.trained
    ), trainer.state.log_history[0]


def close(ours, theirs):
    assert ours.keys() == theirs.keys()
    for name in ours:
        largest = float(ours[name].abs().max())
        torch.testing.assert_close(theirs[name], ours[name], rtol=1e-5, atol=1e-5 * max(largest, 0.1))


HOWS = [
    {},
    {"gate": "no_gate"},
    {"gate": "reverse"},
    {"overshoot": 1.5},
    {"preserve_magnitude": True},
    {"gate": "no_gate", "overshoot": 0.5, "preserve_magnitude": True},
]


@pytest.mark.parametrize("how", HOWS, ids=str)
def test_antipasto_steps_on_the_pipelines_projected_gradient(how, folder):
    basis = antipasto_basis()
    before, ours, row = pipeline_step(tiny_adapter(tiny_model()), basis, **how)
    theirs, logged = trl_step(attach(load(folder)), folder, basis, how)
    close(ours, theirs)
    assert max(float((ours[name] - before[name]).abs().max()) for name in ours) > 1e-3  # it does something
    assert {key: logged[key] for key in ("cin", "cout", "fired")} == pytest.approx(
        {key: row[key] for key in ("cin", "cout", "fired")}, abs=1e-5
    )


def test_clipping_comes_before_the_projection_in_both(folder):
    basis = antipasto_basis()
    _, ours, _ = pipeline_step(tiny_adapter(tiny_model()), basis, clip=0.05)
    theirs, _ = trl_step(attach(load(folder)), folder, basis, max_grad_norm=0.05)
    close(ours, theirs)


def test_accumulated_gradients_are_projected_once_as_a_whole(folder):
    basis = antipasto_basis()
    _, ours, _ = pipeline_step(tiny_adapter(tiny_model()), basis)
    theirs, _ = trl_step(attach(load(folder)), folder, basis, rows=4, gradient_accumulation_steps=2)
    close(ours, theirs)


def test_under_bf16_what_is_kept_has_no_hackward_part(folder):
    basis = antipasto_basis()
    theirs, logged = trl_step(attach(load(folder)), folder, basis, bf16=True)
    _, ours, _ = pipeline_step(tiny_adapter(tiny_model()), basis)
    for name, g in theirs.items():
        assert float((basis.V[name] @ g).max()) < 1e-6 < float(g.norm())
        assert float((g - ours[name]).norm() / ours[name].norm()) < 0.1
    assert logged["cout"] < 1e-6 < logged["cin"]


def test_lora_steps_on_the_pipelines_projected_gradient(folder):
    """PEFT's model is W + s B A, ours W + s (B A - B0 A0): taken off the weights beneath, both are one."""
    model = tiny_model()
    lora = LoRA({name: model.weights[f"{name}.weight"] for name in model.linears}, rank=4, alpha=8)
    theirs = get_peft_model(load(folder), LoraConfig(r=4, lora_alpha=8, target_modules="all-linear"))
    found = adapted(theirs)
    with torch.no_grad():
        for name, (A0, B0) in lora.start.items():
            A, B = found.parameters[name]
            A.copy_(A0)
            B.copy_(B0)
            found.weights[name].sub_(lora.scale * (B0 @ A0))
    facts = {"adapter": "lora", "model_hash": found.model_hash(), "factors_hash": found.factors_hash()}
    basis = random_basis(lora.sizes, **facts)
    _, ours, row = pipeline_step(lora, basis)
    got, logged = trl_step(theirs, folder, basis)
    close(ours, got)
    assert logged["cin"] == pytest.approx(row["cin"], abs=1e-5)


def test_pair_gradients_are_those_of_the_pipeline(folder):
    model = tiny_model()
    pairs, words = pair_set("words", PAIRS), tokenizer()
    samples = [
        Sample(
            words.encode(f"w1 {pair.prompt} w2"),
            [*words.encode(getattr(pair, side)), CONFIG.vocab_size - 1],
        )
        for side in ("hack", "clean")
        for pair in pairs.pairs
    ]
    ours, _ = sample_gradients(model, tiny_adapter(model), samples)
    attached = attach(load(folder))
    hack, clean = pair_gradients(attached, adapted(attached), words, pairs)
    close(ours, {name: torch.cat([hack[name], clean[name]]) for name in hack})
