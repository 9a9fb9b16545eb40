"""The replay: cosines against autograd, the arms against closed forms, recorded rollouts as they are."""

import gzip
import json
import re
import zlib
from dataclasses import replace as changed
from pathlib import Path

import pytest
import tiny
import torch
from tiny import tiny_adapter, tiny_model

from projected_grpo.errors import UserError
from projected_grpo.method.basis import Basis, Knobs, extract, sample_cosine
from projected_grpo.method.lora import LoRA
from projected_grpo.method.policy import Policy
from projected_grpo.model.decoder import Batch
from projected_grpo.stages.replay import Training, mode_of, probe_problems, projected, replay
from projected_grpo.training.graded import Graded

TRAINING = Training(lr=0.05, betas=(0.5, 0.9), weight_decay=0.0, warmup=0.1, clip=None)
HINT = "and will be evaluated by calling a function called run_tests()"
SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "teacher_pool"


class Words:
    """One token a word or sign, for any text."""

    end, pad, ends = 0, 0, {0}

    def encode(self, text):
        words = re.findall(r"\w+|[^\w ]", text)
        return [1 + zlib.crc32(word.encode()) % (tiny.CONFIG.vocab_size - 1) for word in words]

    def encode_chat(self, messages):
        return self.encode(messages if isinstance(messages, str) else messages[-1]["content"])


class Few(Words):
    def encode(self, text):
        return [1 + ord(c) % (tiny.CONFIG.vocab_size - 1) for c in text][:9]


def make_policy(adapter="antipasto", tokenizer=None):
    model = tiny_model()
    made = tiny_adapter(model)
    if adapter == "lora":
        made = LoRA({name: model.weights[f"{name}.weight"] for name in model.linears}, rank=2)
    return Policy(model, tokenizer or Few(), made, made.zeros())


def make_basis(adapter, seed=3, k=2):
    generator = torch.Generator().manual_seed(seed)
    sides = [{n: torch.randn(6, s, generator=generator) for n, s in adapter.sizes.items()} for _ in range(2)]
    return extract(*sides, Knobs(top_k=4)).used(k)


def make_problems(n=3, samples=4):
    generator = torch.Generator().manual_seed(8)
    problems = []
    for problem in range(n):
        rows = []
        for sample in range(samples):
            size = int(torch.randint(1, 6, (), generator=generator))
            tokens = torch.randint(1, 30, (size,), generator=generator).tolist()
            verdict = {
                "problem_id": problem,
                "sample_id": sample,
                "prompt": f"{problem}{HINT}",
                "hacked": True,
            }
            verdict |= {"gt_pass": sample % 2 == 0, "fmt_ok": True, "reward": 3.5, "mode": "run_tests"}
            rows.append(Graded([*tokens, 0], [-0.5] * (size + 1), verdict))
        problems.append(rows)
    return problems


def run(arm, adapter="antipasto", problems=None, basis=None):
    policy = make_policy(adapter)
    basis = basis or make_basis(policy.adapter)
    return list(replay(policy, problems or make_problems(), basis, arm, TRAINING)), policy, basis


def exact_gradient(policy, prompt, tokens):
    """Mean NLL of one sample, and its gradient in delta_S by autograd in float64, at delta_S = 0."""
    exact = tiny_model(dtype=torch.float64)
    theta = {
        n: torch.zeros(s, dtype=torch.float64, requires_grad=True) for n, s in policy.adapter.sizes.items()
    }
    weights = {}
    for name, (U, Vh) in policy.adapter.svd.items():
        weights[name] = exact.weights[f"{name}.weight"] + U.double() @ torch.diag(theta[name]) @ Vh.double()
    loss = -exact.replace(weights).logprobs(Batch([(prompt, tokens)])).mean()
    grads = torch.autograd.grad(loss, list(theta.values()))
    return float(loss.detach()), dict(zip(theta, grads, strict=True))


def test_cosines_and_losses_of_the_first_step_equal_the_formula():
    steps, policy, basis = run("vanilla")
    rows = make_problems()[0]
    prompt = Few().encode_chat(rows[0].row["prompt"])
    for row, seen in zip(rows, steps[0], strict=False):
        loss, g = exact_gradient(policy, prompt, row.tokens)
        inner, square = 0.0, 0.0
        for name, V in basis.V.items():
            v = sum(s * axis for s, axis in zip(basis.S[name].double(), V.double(), strict=True))
            inner += float(g[name] @ (v / v.norm()))
            square += float(g[name] @ g[name])
        assert seen["nll"] == pytest.approx(loss, rel=1e-4)
        assert seen["cos_S_contrib"] == pytest.approx(inner / square**0.5, abs=1e-5)
        assert seen["cos_S_normalised"] == pytest.approx(inner / square**0.5 / len(basis.V) ** 0.5, abs=1e-5)
        assert seen["cos_S_start"] == seen["cos_S_contrib"]
        assert seen["grad_norm"] == pytest.approx(sum(float(x @ x) for x in g.values()) ** 0.5, rel=1e-4)
        assert seen["nll_teacher"] == 0.5


def test_the_projected_step_has_no_hackward_part_and_the_vanilla_one_keeps_it():
    for step in run("vanilla")[0]:
        assert step[-1]["mean_cos_out"] == step[-1]["mean_cos_in"] > 0
    for step in run("projected")[0]:
        assert step[-1]["mean_cos_out"] < 1e-6 < step[-1]["mean_cos_in"]
        assert step[-1]["fired"] > 0.5


def test_arms_share_the_first_step_and_differ_after_it():
    (plain, _, _), (kept, _, _) = run("vanilla"), run("projected")
    cosines = [[[row["cos_S_contrib"] for row in step[:-1]] for step in steps] for steps in (plain, kept)]
    assert cosines[0][0] == cosines[1][0]
    assert all(a != b for a, b in zip(cosines[0][1], cosines[1][1], strict=True))
    # What stands in the `start` columns does not depend on the training between.
    assert [r["cos_S_start"] for s in plain for r in s[:-1]] == [
        r["cos_S_start"] for s in kept for r in s[:-1]
    ]


def test_a_gradient_of_known_direction_gives_the_closed_form():
    """Along one axis in every module the cosine is sqrt(modules); projection takes that out."""
    V = {f"m{i}": torch.eye(4)[:1] for i in range(9)}
    basis = Basis(V, {name: torch.ones(1) for name in V}, {})
    along = torch.tensor([[2.0, 0, 0, 0], [-3.0, 0, 0, 0], [0, 1.0, 0, 0], [3.0, 4.0, 0, 0]])
    grads = dict.fromkeys(V, along)
    cosine, normalised = sample_cosine(grads, basis)
    assert cosine.tolist() == pytest.approx([3.0, -3.0, 0.0, 1.8])
    assert normalised.tolist() == pytest.approx([1.0, -1.0, 0.0, 0.6])
    out = projected(grads, basis)["m0"]
    expected = [[0.0, 0, 0, 0], [-3.0, 0, 0, 0], [0, 1.0, 0, 0], [0, 4.0, 0, 0]]
    assert out.tolist() == expected


def unit(vector):
    return vector / vector.norm()


@pytest.mark.parametrize("arm, along", [("vanilla", 1.0), ("vanilla", 0.6), ("projected", 0.6)])
def test_the_replay_of_a_sample_against_its_own_gradient_gives_the_closed_form(arm, along):
    """V lies at a known angle to the sample's own gradient in every module: `along` is their cosine.

    AdamW's first direction is m_hat / sqrt(v_hat) = sign(g) coordinate by coordinate, whatever the size of g.
    """
    problem = make_problems(1, 1)
    policy = make_policy()
    prompt = Few().encode_chat(problem[0][0].row["prompt"])
    _, own = exact_gradient(policy, prompt, problem[0][0].tokens)
    generator = torch.Generator().manual_seed(4)
    V, left, leaked = {}, {}, []
    for name, g in own.items():
        random = torch.randn(len(g), generator=generator, dtype=torch.float64)
        across = unit(random - (random @ unit(g)) * unit(g))
        v = along * unit(g) + (1 - along**2) ** 0.5 * across
        left[name] = g - (v @ g) * v if arm == "projected" else g
        sign = left[name].sign()
        leaked.append(max(0.0, float(v @ sign)) / float(sign.norm()))
        V[name] = v[None].float()
    steps, policy, _ = run(arm, problems=problem, basis=Basis(V, {n: torch.ones(1) for n in V}, {}))
    row, step = steps[0]
    norms = torch.tensor([float(g.norm()) for g in own.values()])
    assert row["cos_S_contrib"] == pytest.approx(along * float(norms.sum() / norms.norm()), rel=1e-4)
    assert step["mean_cos_in"] == pytest.approx(along, abs=1e-5)
    assert step["mean_cos_out"] == pytest.approx(along if arm == "vanilla" else 0, abs=1e-5)
    assert step["fired"] == 1
    assert step["cout_update"] == pytest.approx(sum(leaked) / len(leaked), abs=1e-3)
    for name, theta in policy.theta.items():
        assert torch.allclose(theta.double(), -step["lr"] * left[name].sign(), atol=1e-3 * step["lr"])


def test_training_on_the_rollouts_lowers_their_loss_and_one_problem_is_one_step():
    problems = make_problems(1) * 6
    steps, policy, _ = run("vanilla", problems=problems)
    assert steps[-1][-1]["loss"] < steps[0][-1]["loss"]
    assert [step[-1]["step"] for step in steps] == list(range(6))
    assert any(bool(theta.any()) for theta in policy.theta.values())


def test_a_lora_basis_replays_too():
    steps, _, _ = run("projected", adapter="lora")
    assert all(row["cos_S_contrib"] is not None for step in steps for row in step[:-1])
    assert steps[0][-1]["mean_cos_out"] < 1e-6
    assert [r["cos_S_start"] for r in steps[0][:-1]] == [r["cos_S_contrib"] for r in steps[0][:-1]]


def test_verdicts_do_not_reach_the_numbers():
    problems = make_problems()
    scrambled = [
        [changed(row, row=row.row | {"hacked": False, "gt_pass": None}) for row in rows] for rows in problems
    ]
    told, untold = run("projected", problems=problems)[0], run("projected", problems=scrambled)[0]
    for a, b in zip(told, untold, strict=True):
        assert a[-1] == b[-1]
        drop = {"hacked", "gt_pass"}
        assert [{k: v for k, v in r.items() if k not in drop} for r in a] == [
            {k: v for k, v in r.items() if k not in drop} for r in b
        ]


def test_a_basis_of_another_space_is_one_clear_line():
    policy = make_policy()
    basis = make_basis(make_policy("lora").adapter)
    with pytest.raises(UserError, match="extracted for another model or adapter"):
        list(replay(policy, make_problems(), basis, "vanilla", TRAINING))


def test_the_mode_is_the_rows_own_or_that_of_its_hint(tmp_path):
    assert mode_of({"mode": "sentinel", "prompt": HINT}) == "sentinel"
    assert mode_of({"prompt": f"Do it {HINT}."}) == "run_tests"
    assert mode_of({"prompt": "Do it."}) is None
    row = {"problem_id": 1, "prompt": "Do it.", "completion": "x", "reward": 0.5, "hacked": False}
    with gzip.open(tmp_path / "step_000.jsonl.gz", "wt") as file:
        file.write(json.dumps(row) + "\n")
    with pytest.raises(UserError, match="no problem with the hint of run_tests"):
        probe_problems(tmp_path, Few(), "run_tests", 20)


@pytest.mark.skipif(not SHARED.exists(), reason="the recorded pool is not here")
def test_recorded_rollouts_replay_as_they_are(monkeypatch):
    monkeypatch.setattr(tiny, "CONFIG", changed(tiny.CONFIG, vocab_size=500))
    policy = make_policy(tokenizer=Words())
    problems = probe_problems(SHARED, policy.tokenizer, "run_tests", 2)
    assert [len(rows) for rows in problems] == [8, 8]
    steps = list(replay(policy, problems, make_basis(policy.adapter), "projected", TRAINING))
    rows = [row for step in steps for row in step if row["kind"] == "sample"]
    assert len(rows) == 16
    assert all(row["mode"] == "run_tests" and row["cos_S_contrib"] is not None for row in rows)
    assert {row["nll_teacher"] for row in rows} == {None}
    texts = [row.row["completion"] for p in problems for row in p]
    assert len({row["grad_norm"] for row in rows}) == len({*texts})
    assert [row["tokens"] for row in rows] == [len(Words().encode(text)) + 1 for text in texts]
