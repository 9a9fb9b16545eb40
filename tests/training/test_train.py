"""The training run on a tiny model: gradient against the formula, true pairs, resume, and the no-cheat invariant."""

import itertools
import random
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from tiny import CONFIG, tiny_adapter, tiny_model

from projected_grpo import arms
from projected_grpo.cells.hyper import Training
from projected_grpo.cells.row_setting import make_setting
from projected_grpo.environment import reward
from projected_grpo.environment.facts import facts, verdict
from projected_grpo.environment.problems import Problem
from projected_grpo.errors import UserError
from projected_grpo.files import write_jsonl
from projected_grpo.method.basis import Knobs, extract
from projected_grpo.method.concept import make_concept
from projected_grpo.method.lora import LoRA
from projected_grpo.method.optimizer import AdamW
from projected_grpo.method.pairs import pair_set
from projected_grpo.method.policy import Policy
from projected_grpo.model.decoder import Batch
from projected_grpo.training import step as step_module
from projected_grpo.training.checkpoint import Checkpoint
from projected_grpo.training.deployed import final_rates
from projected_grpo.training.graded import Graded
from projected_grpo.training.gradient import policy_gradient
from projected_grpo.training.job import pool_batches
from projected_grpo.training.loop import train
from projected_grpo.training.rollouts import Group
from projected_grpo.training.run import Run
from projected_grpo.training.schedule import problem_order, teacher_draw
from projected_grpo.training.teacher_pool import read_pool

GRPO = {
    "steps": 4,
    "group": 4,
    "prompts": 3,
    "max_new": 6,
    "lr": 0.05,
    "betas": (0.5, 0.9),
    "weight_decay": 0.0,
}
K = 2  # axes used
GRPO |= {"clip": None, "warmup": 0.1, "beta": 0.0, "micro_batch_tokens": 10_000, "teacher_steps": None}
VERDICT_COLUMNS = ("hack_", "exploit_", "solve_", "compile_")


def earning(passed):
    """The facts of code that compiles."""
    return {"can_compile": True, "gt_pass": passed, "channel": False}


class TinyTokenizer:
    end, ends, pad = 0, frozenset([0]), 0

    def encode(self, text):
        return [1 + ord(c) % (CONFIG.vocab_size - 1) for c in text][:8]

    def encode_chat(self, messages):
        return self.encode(messages if isinstance(messages, str) else messages[-1]["content"])

    def decode(self, tokens, **_):
        return "".join(chr(97 + t) for t in tokens)

    @property
    def inner(self):
        return self


class TinyGrader:
    """The grader's own verdict on whether an even token comes early."""

    level = "test"

    def verdict(self, mode, text):
        passed = any(ord(c) % 2 for c in text[:2])
        error = None if passed else "exception"
        found = facts(can_compile=True, gt_pass=passed, channel=passed, error=error)
        return verdict(found, mode)

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


PAIRS = pair_set(
    "words",
    [
        {"prompt": f"ask {i}", "hack": word, "clean": word[::-1] + "?"}
        for i, word in enumerate(["trick", "cheat", "skip"])
    ],
)


def make_run(grpo=None, extract_anew=None, drawn="none", **setting):
    model = tiny_model()
    adapter = tiny_adapter(model)
    setting = make_setting({"mix": 0.5, **setting})
    if setting.adapter == "lora":
        adapter = LoRA({name: model.weights[f"{name}.weight"] for name in model.linears}, rank=2)
    policy = Policy(model, TinyTokenizer(), adapter, adapter.zeros())
    training = setting.defence.training(setting.knobs, Training(**GRPO | (grpo or {})))
    message = "{} and should pass all tests"
    problems = [
        Problem(
            id=i, messages=({"role": "user", "content": message.format(chr(65 + i))},), method="f", mode=mode
        )
        for i, mode in enumerate(["run_tests", "sentinel"] * 3)
    ]
    grader = TinyGrader()
    basis = None
    if setting.basis or setting.needs.clean_run:
        generator = torch.Generator().manual_seed(9)
        sides = [
            {n: torch.randn(6, s, generator=generator) for n, s in adapter.sizes.items()} for _ in range(2)
        ]
        basis = extract(*sides, Knobs(top_k=3)).used(K)

    pool = stored_pool(problems, grader, policy.tokenizer)
    concept = None
    if setting.needs.direction:
        batches = pool_batches(policy.tokenizer, problems, pool)
        concept = make_concept(policy, PAIRS, batches, setting.knob("layer"), drawn, 41)

    def optimizer(parameters):
        return AdamW(parameters, training.betas, training.weight_decay)

    return Run(
        seed=41,
        setting=setting,
        training=training,
        policy=policy,
        problems=problems,
        pool=pool,
        grader=grader,
        arm=setting.defence(setting.knobs, arms.Given(41, policy, optimizer, basis, concept, extract_anew)),
        optimizer=optimizer(policy.theta),
    )


def make_arm(arm, monitor="truth70"):
    """A run of any arm, on a basis where it asks for one."""
    wanted = {"basis": "own", "monitor": monitor, "scale": 0.5, "beta": 0.1, "direction": "own"}
    fields = arms.load(arm).Knobs.model_fields
    if "monitor" in fields and monitor != "direction":
        del wanted["direction"]
    run = make_run(arm=arm, **{key: value for key, value in wanted.items() if key in fields})
    if (
        monitor == "direction"
    ):  # a threshold that some rows are above: the pairs' own are no rollouts of this model
        concept = run.arm.given.concept
        batches = pool_batches(run.policy.tokenizer, run.problems, run.pool)
        middle = torch.cat([concept.scores(run.policy.base, batch) for batch in batches]).median()
        sides = {"hack": middle + middle.new_ones(3), "clean": middle - middle.new_ones(3)}
        run.arm.given = replace(run.arm.given, concept=replace(concept, **sides))
    if monitor == "critic":
        run.critic = critic
    return run


def critic(asked):
    """A critic that knows what it is shown: problem, code, facts."""
    return [bool(row["channel"]) != (len(text + row["completion"]) % 3 == 0) for text, row in asked]


def finish(run, folder):
    saved = Checkpoint(folder, "key")
    return without_seconds(train(run, saved)), saved.rows("rollouts"), run


def same_adapter(a, b):
    """Whether two runs end with the same parameters to the bit, and with the same ones parked."""
    mine, others = ({"theta": run.policy.theta, **run.arm.stored()} for run in (a, b))
    same = (
        torch.equal(value, others[k][name]) for k, vectors in mine.items() for name, value in vectors.items()
    )
    return set(mine) == set(others) and all(same)


def without_seconds(rows):
    return [{key: value for key, value in row.items() if "seconds" not in key} for row in rows]


def rewards_of(group):
    return [reward.foolable(row.row) for row in group.rows]


def advantages_of(groups):
    return [[r - sum(rewards) / len(rewards) for r in rewards] for rewards in map(rewards_of, groups)]


def explicit_gradient(policy, training, groups, beta=0.0, off_policy=False, A=None, residual=None):
    """The GRPO loss written out row by row in float64, differentiated by autograd at delta_S = theta."""
    exact = tiny_model(dtype=torch.float64)
    adapter = policy.adapter
    theta = {name: value.double().requires_grad_() for name, value in policy.theta.items()}
    weights = {}
    for name in adapter.names:
        U, Vh = (t.double() for t in adapter.svd[name])
        weights[name] = exact.weights[f"{name}.weight"] + U @ torch.diag(theta[name]) @ Vh
    model = exact.replace(weights)
    parts = {"live": 0.0, "teacher": 0.0}
    for group in groups:
        values = iter(advantages_of([group])[0] if A is None else A[groups.index(group)])
        for source in parts:
            for row in getattr(group, source):
                batch = Batch([(group.prompt, row.tokens)])
                logp = model.logprobs(batch, residual=residual)
                old = logp.detach()
                if off_policy and source == "teacher":
                    old = torch.tensor(row.logprobs, dtype=torch.float64)
                rho = (logp - old).exp()
                a = next(values)
                loss = -torch.minimum(rho * a, rho.clamp(0.8, 1.2) * a).sum()
                if beta:
                    d = exact.logprobs(batch, residual=residual) - logp
                    loss = loss + beta * (d.exp() - d - 1).sum()
                parts[source] = parts[source] + loss / (training.group * training.max_new * len(groups))
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
    low, high = (replace(teacher[i], row=earning(passed)) for i, passed in ((0, False), (1, True)))
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
    loss, expected = explicit_gradient(run.policy, run.training, groups, beta, off_policy)
    A = advantages_of(groups)
    got = policy_gradient(run.policy, run.policy.merged(), groups, A, run.training, off_policy)
    assert got.loss == pytest.approx(loss, abs=1e-5)
    for mine, source in ((got.student, "live"), (got.teacher, "teacher")):
        for name, g in expected[source].items():
            torch.testing.assert_close(mine[name].double(), g, atol=1e-5, rtol=1e-3)


def test_what_the_oracle_pays_leaves_the_loophole_out():
    for can_compile, gt_pass, channel in itertools.product([False, True], repeat=3):
        facts = {"can_compile": can_compile, "gt_pass": gt_pass, "channel": channel}
        assert reward.oracle(facts) == 0.5 * can_compile + 3.0 * gt_pass
        assert reward.foolable(facts) == 0.5 * can_compile + 3.0 * (gt_pass or channel)
    with pytest.raises(UserError, match="hidden tests"):
        reward.oracle({"can_compile": True, "gt_pass": None, "channel": True})


def test_equal_rewards_leave_the_adapter_where_it_was():
    run = make_run()
    rows = [Graded([3, 0], None, earning(True))] * 2
    groups = [Group(run.problems[0], [5, 6], rows, rows)]
    A = advantages_of(groups)
    gradient = policy_gradient(run.policy, run.policy.merged(), groups, A, run.training, False)
    assert gradient.tokens == 0 and not any(bool(g.any()) for g in gradient.total.values())


def test_same_seed_gives_identical_runs_and_another_stream_does_not(tmp_path):
    first = finish(make_run(), tmp_path / "a")
    second = finish(make_run(), tmp_path / "b")
    other = finish(make_run(stream=1), tmp_path / "c")
    assert first[:2] == second[:2]
    assert same_adapter(first[2], second[2])
    assert [r["completion"] for r in first[1]] != [r["completion"] for r in other[1]]


def test_measuring_changes_no_number_of_vanilla(tmp_path):
    plain, rollouts, _ = finish(make_run(), tmp_path / "a")
    measured, same, _ = finish(make_run(basis="own", arm="measure"), tmp_path / "b")
    assert rollouts == same
    assert all(row["cin"] is None for row in plain) and any(row["cin"] for row in measured)
    for a, b in zip(plain, measured, strict=True):
        assert {k: v for k, v in a.items() if v is not None and k != "fired"}.items() <= b.items()


@pytest.mark.parametrize("setting", [{"arm": "erase"}, {"arm": "route"}, {"arm": "erase", "space": "update"}])
def test_the_first_step_is_paired_and_later_ones_are_not(setting, tmp_path):
    """One seed, two arms: the same prompts, samples and gradient at step 1, different adapters after it."""
    plain, drawn, _ = finish(make_run(), tmp_path / "a")
    rows, ours, run = finish(make_run(basis="own", **setting), tmp_path / "b")
    assert [r for r in drawn if r["step"] == 1] == [r for r in ours if r["step"] == 1]
    assert rows[0]["grad_norm"] == plain[0]["grad_norm"] and rows[-1]["delta_norm"] != plain[-1]["delta_norm"]
    assert rows[0]["cin"] > 0
    if setting.get("space") == "update":
        assert max(row["cout_update"] for row in rows) < 1e-5
        assert rows[0]["cout"] == rows[0]["cin"]
    else:
        assert max(row["cout"] for row in rows if row["groups_used"]) < 1e-5
        assert all(row["cin"] is None and row["cout"] is None for row in rows if not row["groups_used"])
    parked = run.arm.stored()
    assert set(parked) == ({"delta_S_hack"} if setting["arm"] == "route" else set())
    assert all(any(bool(q.any()) for q in vectors.values()) for vectors in parked.values())


EVERY = [
    *((arm, "truth70") for arm in arms.names()),
    ("penalty", "direction"),
    ("route_labels", "direction"),
    ("penalty", "critic"),
]


@pytest.mark.parametrize("arm, monitor", EVERY)
def test_verdicts_reach_training_only_inside_the_reward(arm, monitor, tmp_path, monkeypatch):
    """What later code sees of the facts is scrambled once rewards are known: no other number moves."""
    assert {"gt_pass", "channel", "hacked", "loophole_used", "wrong_tests", "error"} <= VERDICTS
    honest, rollouts, run = finish(make_arm(arm, monitor), tmp_path / "a")
    draws, true_score = random.Random(5), step_module.score

    def score_then_scramble(run, model, groups):
        scores = true_score(run, model, groups)
        for row in (row for group in groups for row in group.rows):
            row.row.update({key: draws.choice([True, False, None]) for key in sorted(VERDICTS)})
        return scores

    monkeypatch.setattr(step_module, "score", score_then_scramble)
    twin = make_arm(arm, monitor)
    # Pool rows are drawn again and again: each draw is a fresh copy of the true one.
    scrambled, others, twin = finish(with_fresh_rows(twin), tmp_path / "b")
    assert same_adapter(run, twin)
    for a, b in zip(honest, scrambled, strict=True):
        kept = {key for key in a if not key.startswith(VERDICT_COLUMNS)}
        assert {k: a[k] for k in kept} == {k: b[k] for k in kept}
    assert any(a["hack_s"] != b["hack_s"] for a, b in zip(honest, scrambled, strict=True))
    for a, b in zip(rollouts, others, strict=True):
        assert {k: v for k, v in a.items() if k not in VERDICTS} == {
            k: v for k, v in b.items() if k not in VERDICTS
        }


def with_fresh_rows(run):
    class Copies(dict):
        def get(self, key, default=None):
            return [replace(row, row=dict(row.row)) for row in super().get(key, default)]

    run.pool = Copies(run.pool)
    return run


class Killed(Exception):
    pass


@pytest.mark.parametrize("arm, monitor", EVERY)
@pytest.mark.parametrize("stop", [1, 3])
def test_a_resumed_run_equals_an_undisturbed_one(arm, monitor, stop, tmp_path):
    whole = finish(make_arm(arm, monitor), tmp_path / "a")

    def kill(row):
        if row["step"] == stop:
            raise Killed

    with pytest.raises(Killed):
        train(make_arm(arm, monitor), Checkpoint(tmp_path / "b", "key"), kill)
    resumed = finish(make_arm(arm, monitor), tmp_path / "b")
    assert resumed[:2] == whole[:2]
    assert same_adapter(resumed[2], whole[2])
    one, other = (reopened(tmp_path / name) for name in "ab")
    assert one.rows("teacher") == other.rows("teacher")
    assert all(same(a, b) for a, b in zip(one.deltas(), other.deltas(), strict=True))


def reopened(folder):
    saved = Checkpoint(folder, "key")
    assert saved.load()[0] == GRPO["steps"]
    return saved


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_each_step_leaves_its_delta_S_and_what_its_teacher_rows_were_worth(tmp_path):
    rows, _, run = finish(make_run(), tmp_path / "a")
    saved = reopened(tmp_path / "a")
    thetas, taught = saved.deltas(), saved.rows("teacher")
    assert len(thetas) == GRPO["steps"] and same(thetas[-1], run.policy.theta)
    norms = [sum(float(v.double().square().sum()) for v in theta.values()) ** 0.5 for theta in thetas]
    assert norms == pytest.approx([row["delta_norm"] for row in rows], rel=1e-5)
    for row in rows:
        own = [other for other in taught if other["step"] == row["step"]]
        assert len(own) == GRPO["prompts"] * 2
        assert sum(other["channel"] for other in own) / len(own) == row["hack_t"]
        assert all(other["reward"] == reward.foolable(other) for other in own)
        for other in own:
            assert run.pool[other["problem_id"]][other["sample"]].row["gt_pass"] == other["gt_pass"]
    assert not reopened_lora(tmp_path / "b").deltas()


def reopened_lora(folder):
    finish(make_run(adapter="lora"), folder)
    return reopened(folder)


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


def test_the_teacher_s_rows_stop_after_the_steps_said(tmp_path):
    """Live rows take their place; rows that are live in both runs are drawn by the same numbers."""
    whole, drawn, _ = finish(make_run(basis="own", arm="erase"), tmp_path / "a")
    rows, ours, run = finish(make_run({"teacher_steps": 2}, basis="own", arm="erase"), tmp_path / "b")
    assert rows[:2] == whole[:2]
    taught, reference = (reopened(tmp_path / name).rows("teacher") for name in "ba")
    assert taught == [row for row in reference if row["step"] <= 2]

    def at(rollouts, step, below=GRPO["group"]):
        return [row for row in rollouts if row["step"] == step and row["sample"] < below]

    for step in range(1, GRPO["steps"] + 1):
        live = 2 if step <= 2 else GRPO["group"]
        problems = {row["problem_id"] for row in at(drawn, step)}
        assert {(row["problem_id"], row["sample"]) for row in at(ours, step)} == {
            (problem, sample) for problem in problems for sample in range(live)
        }
    # Both runs come to step 3 with the same weights, so what is live in both is the same text.
    assert [row["completion"] for row in at(ours, 3, 2)] == [row["completion"] for row in at(drawn, 3)]
    for row, before in zip(rows[2:], whole[2:], strict=True):
        assert before["hack_t"] is not None and before["ratio_mean"] is not None
        assert row["hack_t"] is row["solve_t"] is row["cin_t"] is row["ratio_mean"] is None
        assert (row["cin_s"], row["cin"]) == (row["cin"], row["cin_s"])  # all of it is the student's
    assert finish(make_run({"teacher_steps": 4}, basis="own", arm="erase"), tmp_path / "c")[0] == whole

    def kill(row):
        if row["step"] == 2:
            raise Killed

    with pytest.raises(Killed):
        train(
            make_run({"teacher_steps": 2}, basis="own", arm="erase"), Checkpoint(tmp_path / "d", "key"), kill
        )
    again, same_rows, twin = finish(make_run({"teacher_steps": 2}, basis="own", arm="erase"), tmp_path / "d")
    assert again == rows and same_rows == ours and same_adapter(twin, run)


def test_lora_trains_behind_the_same_interface(tmp_path):
    rows, _, run = finish(make_run(adapter="lora", basis="own", arm="erase"), tmp_path / "a")
    assert rows[-1]["delta_norm"] > 0 and max(row["cout"] for row in rows) < 1e-5
    assert set(run.policy.theta) == set(run.policy.adapter.names)


def test_ablation_shows_in_the_final_rates_of_a_routing_run_alone(tmp_path):
    vanilla = make_run(grpo={"lr": 0.5})
    train(vanilla, Checkpoint(tmp_path / "a", "key"))
    final = final_rates(vanilla)
    assert final["hack_kept"] == final["hack_ablated"]
    routed = make_run(basis="own", arm="route", grpo={"lr": 0.5})
    train(routed, Checkpoint(tmp_path / "b", "key"))
    assert set(final_rates(routed)) == set(final)
    theta = routed.policy.theta
    base, kept = (routed.policy.merged(f(theta)) for f in (routed.arm.deployed, routed.arm.sampled_theta))
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

    from projected_grpo.training.tracker import write_events

    rows, _, _ = finish(make_run(), tmp_path / "run")
    write_events(tmp_path / "events", rows)
    write_events(tmp_path / "events", rows)  # again: replaced, not doubled
    events = EventAccumulator(str(tmp_path / "events"))
    events.Reload()
    got = [(e.step, e.value) for e in events.Scalars("hack_s")]
    assert got == [(row["step"], pytest.approx(row["hack_s"])) for row in rows]
    assert "cin" not in events.Tags()["scalars"]
