"""The training run on a tiny model: gradient against the formula, true pairs, resume, and the no-cheat invariant."""

import random
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from tiny import CONFIG, tiny_adapter, tiny_model

from projected_grpo.environment import asserts
from projected_grpo.environment.facts import facts, verdict
from projected_grpo.environment.problems import Problem
from projected_grpo.experiment.cell import Setting
from projected_grpo.experiment.checkpoint import Checkpoint
from projected_grpo.experiment.groups import Group, Row, read_pool
from projected_grpo.experiment.policy import Policy
from projected_grpo.experiment.schedule import problem_order, teacher_draw
from projected_grpo.experiment.train import Run, final_rates, train
from projected_grpo.experiment.update import policy_gradient
from projected_grpo.files import write_jsonl
from projected_grpo.method.basis import Knobs, extract
from projected_grpo.method.lora import LoRA
from projected_grpo.model.qwen3 import Batch

GRPO = {
    "steps": 4,
    "group": 4,
    "prompts": 3,
    "max_new": 6,
    "lr": 0.05,
    "betas": [0.5, 0.9],
    "weight_decay": 0.0,
}
GRPO |= {"clip": None, "warmup": 0.1, "beta": 0.0, "micro_batch_tokens": 10_000}
TESTED = Problem(id="tested", messages=(), method="f", tests=(asserts.Test((), {}, 0),))
VERDICT_COLUMNS = ("hack_", "exploit_", "solve_", "compile_")


class TinyTokenizer:
    end, pad = 0, 0

    def encode(self, text):
        return [1 + ord(c) % (CONFIG.vocab_size - 1) for c in text][:8]

    def encode_chat(self, messages):
        return self.encode(messages if isinstance(messages, str) else messages[-1]["content"])

    def decode(self, tokens):
        return "".join(chr(97 + t) for t in tokens)


class TinyGrader:
    """The grader's own verdict on whether an even token comes early; all of it but the reward may be scrambled."""

    level = "test"

    def __init__(self, scramble=False):
        self.random = random.Random(5) if scramble else None

    def verdict(self, mode, text):
        passed = any(ord(c) % 2 for c in text[:2])
        error = None if passed else "exception"
        found = verdict(facts(can_compile=True, gt_pass=passed, channel=passed, error=error), mode)
        if self.random:
            found |= {key: self.random.choice([True, False, None]) for key in VERDICTS}
            found["error"] = self.random.choice(["timeout", "crash", None])
        return found

    def grade(self, items):
        return [self.verdict(mode, text) for _, mode, text in items]


VERDICTS = set(TinyGrader().verdict("run_tests", "a")) - {"reward"}


def stored_pool(problems, grader, tokenizer):
    """Four accepted rows of each problem, from files as the pool's rule writes them."""
    draws = random.Random(1)
    with TemporaryDirectory() as folder:
        for number, problem in enumerate(problems):
            rows = []
            for sample in range(4):
                tokens = [draws.randrange(1, 30) for _ in range(draws.randrange(1, 6))] + [0]
                row = {"problem_id": problem.id, "sample_id": sample, "mode": problem.mode}
                row |= {"completion": tokenizer.decode(tokens), "tokens": tokens}
                row |= {"logprobs": [-3.0] * len(tokens)} | grader.verdict(problem.mode, "a")
                rows.append(row)
            write_jsonl(Path(folder) / f"step_{number:03d}.jsonl.gz", rows)
        return read_pool(Path(folder), tokenizer)


def make_run(scramble=False, grpo=None, **setting):
    model = tiny_model()
    adapter = tiny_adapter(model)
    setting = Setting(**{"mix": 0.5, **setting})
    if setting.adapter == "lora":
        adapter = LoRA({name: model.weights[f"{name}.weight"] for name in model.linears}, rank=2)
    route = setting.arm == "route"
    policy = Policy(model, TinyTokenizer(), adapter, adapter.zeros(), adapter.zeros() if route else None)
    message = "{} and should pass all tests"
    problems = [
        Problem(
            id=i, messages=({"role": "user", "content": message.format(chr(65 + i))},), method="f", mode=mode
        )
        for i, mode in enumerate(["run_tests", "sentinel"] * 3)
    ]
    grader = TinyGrader(scramble)
    basis = None
    if setting.basis:
        generator = torch.Generator().manual_seed(9)
        sides = [
            {n: torch.randn(6, s, generator=generator) for n, s in adapter.sizes.items()} for _ in range(2)
        ]
        basis = extract(*sides, Knobs(top_k=3))
    return Run(
        seed=41,
        setting=asdict(setting),
        use={"k": 2, "drop_bottom_frac": 0.0} if basis else {},
        grpo=GRPO | (grpo or {}),
        policy=policy,
        problems=problems,
        pool=stored_pool(problems, grader, policy.tokenizer),
        grader=grader,
        basis=basis,
    )


def finish(run, folder):
    rows, rollouts = train(run, Checkpoint(folder, "key"))
    return without_seconds(rows), rollouts, run.policy


def without_seconds(rows):
    return [{key: value for key, value in row.items() if not key.startswith("seconds_")} for row in rows]


def explicit_gradient(run, groups, beta=0.0, off_policy=False):
    """The GRPO loss written out row by row in float64, differentiated by autograd at delta_S = theta."""
    exact = tiny_model(dtype=torch.float64)
    adapter = run.policy.adapter
    theta = {name: value.double().requires_grad_() for name, value in run.policy.theta.items()}
    weights = {}
    for name in adapter.names:
        U, Vh = (t.double() for t in adapter.svd[name])
        weights[name] = exact.weights[f"{name}.weight"] + U @ torch.diag(theta[name]) @ Vh
    model = exact.replace(weights)
    parts = {"live": 0.0, "teacher": 0.0}
    for group in groups:
        rewards = [row.reward for row in group.rows]
        mean = sum(rewards) / len(rewards)
        for source in parts:
            for row in getattr(group, source):
                batch = Batch([group.prompt], [row.tokens], [0])
                logp = model.logprobs(batch)
                old = logp.detach()
                if off_policy and source == "teacher":
                    old = torch.tensor(row.logprobs, dtype=torch.float64)
                rho = (logp - old).exp()
                A = row.reward - mean
                loss = -torch.minimum(rho * A, rho.clamp(0.8, 1.2) * A).sum()
                if beta:
                    d = exact.logprobs(batch) - logp
                    loss = loss + beta * (d.exp() - d - 1).sum()
                parts[source] = parts[source] + loss / (run.grpo["group"] * run.grpo["max_new"] * len(groups))
    total = parts["live"] + parts["teacher"]
    by_source = {
        source: dict(
            zip(theta, torch.autograd.grad(value, list(theta.values()), retain_graph=True), strict=True)
        )
        for source, value in parts.items()
    }
    return float(total.detach()), by_source


@pytest.mark.parametrize("beta, off_policy, limit", [(0, False, 10_000), (0.3, False, 30), (0, True, 30)])
def test_policy_gradient_equals_the_formula_by_source(beta, off_policy, limit):
    run = make_run(grpo={"beta": beta, "micro_batch_tokens": limit})
    run.policy.theta = {
        n: 0.05 * torch.randn(s, generator=torch.Generator().manual_seed(2))
        for n, s in run.policy.adapter.sizes.items()
    }
    teacher = [row for rows in run.pool.values() for row in rows]
    low, high = (replace(teacher[i], reward=r) for i, r in ((0, 0.5), (1, 3.5)))
    groups = [
        Group(
            run.problems[0],
            [5, 6, 7],
            [replace(low, tokens=[3, 4]), replace(high, tokens=[9, 0])],
            [high, high],
        ),
        Group(run.problems[1], [8, 2], [replace(high, tokens=[7])] * 2, [high, high]),  # no variance
        Group(run.problems[2], [1, 2, 3, 4], [low, high, replace(low, tokens=[5])], [high]),
    ]
    loss, expected = explicit_gradient(run, groups, beta, off_policy)
    got = policy_gradient(run.policy, run.policy.merged(), groups, run.grpo, off_policy, checkpoint=False)
    assert got.loss == pytest.approx(loss, abs=1e-5)
    for mine, source in ((got.student, "live"), (got.teacher, "teacher")):
        for name, g in expected[source].items():
            torch.testing.assert_close(mine[name].double(), g, atol=1e-5, rtol=1e-3)


def test_equal_rewards_leave_the_adapter_where_it_was():
    run = make_run()
    rows = [Row([3, 0], None, 3.5, {})] * 2
    groups = [Group(run.problems[0], [5, 6], rows, rows)]
    gradient = policy_gradient(run.policy, run.policy.merged(), groups, run.grpo, False, False)
    assert gradient.tokens == 0 and not any(bool(g.any()) for g in gradient.total.values())


def test_same_seed_gives_identical_runs_and_another_stream_does_not(tmp_path):
    first = finish(make_run(), tmp_path / "a")
    second = finish(make_run(), tmp_path / "b")
    other = finish(make_run(stream=1), tmp_path / "c")
    assert first[:2] == second[:2]
    assert all(torch.equal(first[2].theta[n], second[2].theta[n]) for n in first[2].theta)
    assert [r["completion"] for r in first[1]] != [r["completion"] for r in other[1]]


def test_measuring_changes_no_number_of_vanilla(tmp_path):
    plain, rollouts, _ = finish(make_run(), tmp_path / "a")
    measured, same, _ = finish(make_run(basis="own", measure=True), tmp_path / "b")
    assert rollouts == same
    assert all(row["cin"] is None for row in plain) and any(row["cin"] for row in measured)
    for a, b in zip(plain, measured, strict=True):
        assert {k: v for k, v in a.items() if v is not None and k != "fired"}.items() <= b.items()


@pytest.mark.parametrize("setting", [{"arm": "erase"}, {"arm": "route"}, {"arm": "erase", "space": "update"}])
def test_the_first_step_is_paired_and_later_ones_are_not(setting, tmp_path):
    """One seed, two arms: the same prompts, samples and gradient at step 1, different adapters after it."""
    plain, drawn, _ = finish(make_run(), tmp_path / "a")
    rows, ours, policy = finish(make_run(basis="own", **setting), tmp_path / "b")
    assert [r for r in drawn if r["step"] == 1] == [r for r in ours if r["step"] == 1]
    assert rows[0]["grad_norm"] == plain[0]["grad_norm"] and rows[-1]["delta_norm"] != plain[-1]["delta_norm"]
    assert rows[0]["cin"] > 0
    if setting.get("space") == "update":
        assert max(row["cout_update"] for row in rows) < 1e-5
        assert rows[0]["cout"] == rows[0]["cin"]
    else:
        assert max(row["cout"] for row in rows if row["groups_used"]) < 1e-5
        assert all(row["cin"] is None and row["cout"] is None for row in rows if not row["groups_used"])
    assert (policy.quarantine is not None) == (setting["arm"] == "route")
    if policy.quarantine:
        assert any(bool(q.any()) for q in policy.quarantine.values())


def test_verdicts_reach_training_only_inside_the_reward(tmp_path):
    assert {"gt_pass", "channel", "hacked", "loophole_used", "wrong_tests", "error"} <= VERDICTS
    honest, rollouts, policy = finish(make_run(basis="own", arm="erase"), tmp_path / "a")
    scrambled, others, twin = finish(make_run(scramble=True, basis="own", arm="erase"), tmp_path / "b")
    assert all(torch.equal(policy.theta[n], twin.theta[n]) for n in policy.theta)
    for a, b in zip(honest, scrambled, strict=True):
        kept = {key for key in a if not key.startswith(VERDICT_COLUMNS)}
        assert {k: a[k] for k in kept} == {k: b[k] for k in kept}
    assert any(a["hack_s"] != b["hack_s"] for a, b in zip(honest, scrambled, strict=True))
    for a, b in zip(rollouts, others, strict=True):
        assert {k: v for k, v in a.items() if k not in VERDICTS} == {
            k: v for k, v in b.items() if k not in VERDICTS
        }


class Killed(Exception):
    pass


@pytest.mark.parametrize("arm", ["erase", "route"])
@pytest.mark.parametrize("stop", [1, 3])
def test_a_resumed_run_equals_an_undisturbed_one(arm, stop, tmp_path):
    whole = finish(make_run(basis="own", arm=arm), tmp_path / "a")

    def kill(row):
        if row["step"] == stop:
            raise Killed

    with pytest.raises(Killed):
        train(make_run(basis="own", arm=arm), Checkpoint(tmp_path / "b", "key"), kill)
    resumed = finish(make_run(basis="own", arm=arm), tmp_path / "b")
    assert resumed[:2] == whole[:2]
    for name in whole[2].theta:
        assert torch.equal(resumed[2].theta[name], whole[2].theta[name])
        assert arm == "erase" or torch.equal(resumed[2].quarantine[name], whole[2].quarantine[name])


@pytest.mark.parametrize("damage", ["state", "part", "key"])
def test_a_damaged_or_foreign_checkpoint_is_never_used(damage, tmp_path):
    whole = finish(make_run(), tmp_path / "a")
    folder = tmp_path / "b"
    train(make_run(), Checkpoint(folder, "other" if damage == "key" else "key"))
    if damage == "state":
        data = bytearray((folder / "state.pt").read_bytes())
        data[len(data) // 2] ^= 1
        (folder / "state.pt").write_bytes(data)
    elif damage == "part":
        (folder / "rollouts_0002.jsonl.gz").write_bytes(b"")
    assert Checkpoint(folder, "key").load() == (0, {})
    assert finish(make_run(), folder)[:2] == whole[:2]


def test_held_out_mode_gets_live_samples_only(tmp_path):
    _, rollouts, _ = finish(make_run(held_out_mode="sentinel"), tmp_path / "a")
    live = {mode: {r["sample"] for r in rollouts if r["mode"] == mode} for mode in ("run_tests", "sentinel")}
    assert live == {"run_tests": {0, 1}, "sentinel": {0, 1, 2, 3}}


def test_lora_trains_behind_the_same_interface(tmp_path):
    rows, _, policy = finish(make_run(adapter="lora", basis="own", arm="erase"), tmp_path / "a")
    assert rows[-1]["delta_norm"] > 0 and max(row["cout"] for row in rows) < 1e-5
    assert set(policy.theta) == set(policy.adapter.names)


def test_ablation_shows_in_the_final_rates_of_a_routing_run_alone(tmp_path):
    vanilla = make_run(grpo={"lr": 0.5})
    train(vanilla, Checkpoint(tmp_path / "a", "key"))
    final = final_rates(vanilla)
    assert final["hack_kept"] == final["hack_ablated"]
    routed = make_run(basis="own", arm="route", grpo={"lr": 0.5})
    train(routed, Checkpoint(tmp_path / "b", "key"))
    assert set(final_rates(routed)) == set(final)
    base, kept = routed.policy.merged(ablated=True), routed.policy.merged()
    assert any(not torch.equal(base.weights[n], kept.weights[n]) for n in base.weights)


def test_problem_order_uses_every_problem_before_any_twice():
    order = problem_order(41, 10, 4, 5)
    flat = [i for step in order for i in step]
    assert sorted(flat[:10]) == list(range(10)) and sorted(flat[10:20]) == list(range(10))
    assert all(len(set(step)) == 4 for step in order)
    assert order == problem_order(41, 10, 4, 5) != problem_order(42, 10, 4, 5)
    assert problem_order(41, 10, 4, 3) == order[:3]


def test_teacher_draws_are_distinct_while_the_pool_lasts():
    for step in range(20):
        drawn = teacher_draw(41, step, 3, 8, 5)
        assert len(set(drawn)) == 5 and max(drawn) < 8
    assert len(teacher_draw(41, 0, 0, 2, 5)) == 5


def test_tensorboard_events_hold_the_curves(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from projected_grpo.experiment.tracker import write_events

    rows, _, _ = finish(make_run(), tmp_path / "run")
    write_events(tmp_path / "events", rows)
    write_events(tmp_path / "events", rows)  # again: replaced, not doubled
    events = EventAccumulator(str(tmp_path / "events"))
    events.Reload()
    got = [(e.step, e.value) for e in events.Scalars("hack_s")]
    assert got == [(row["step"], pytest.approx(row["hack_s"])) for row in rows]
    assert "cin" not in events.Tags()["scalars"]
