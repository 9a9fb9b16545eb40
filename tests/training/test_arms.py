"""The arms' mechanics, each against a loop written from its formula."""

import copy
import random

import pytest
import torch
from safetensors.torch import load_file
from test_train import critic, explicit_gradient, finish, make_arm, make_run

from projected_grpo import arms
from projected_grpo.arms.shared.prompted import CONTROLS, SENTENCES
from projected_grpo.cells.cell import cell_id
from projected_grpo.cells.row_setting import make_setting
from projected_grpo.environment.levers import LEVERS
from projected_grpo.environment.monitors import MONITORS
from projected_grpo.environment.prompts import PERMISSION, messages_for
from projected_grpo.errors import UserError
from projected_grpo.method.gradients import Gradient
from projected_grpo.method.loss import advantages
from projected_grpo.method.projection import Intervention, project
from projected_grpo.training import step as step_module
from projected_grpo.training.checkpoint import Checkpoint
from projected_grpo.training.gradient import policy_gradient
from projected_grpo.training.panels import deployed_rows
from projected_grpo.training.results import write_run
from projected_grpo.training.rollouts import make_groups

REWARDS = [3.5, 0.5, 3.5, 0.0, 3.5]
FLAGS = [True, False, False, True, False]


def tensors(rewards=REWARDS, flags=FLAGS, n_live=5):
    return torch.tensor(rewards, dtype=torch.float64), arms.Seen(
        [], torch.arange(5) < n_live, torch.tensor(flags)
    )


def an_arm(name, **knobs):
    setting = make_setting({"arm": name, **knobs})
    return setting.defence(setting.knobs, None)


def test_a_penalty_is_taken_off_flagged_rows_before_the_mean():
    arm = an_arm("penalty", monitor="truth100", cost=2.0)
    earned = [r - 2.0 * flag for r, flag in zip(REWARDS, FLAGS, strict=True)]
    mean = sum(earned) / len(earned)
    assert advantages(arm.rewards(*tensors())).tolist() == pytest.approx([r - mean for r in earned])


LIVE = [True, True, True, False, False]  # the last two rows are the teacher's


def test_spared_rows_of_the_teacher_keep_what_vanilla_pays():
    arm = an_arm("penalty", monitor="truth100", cost=2.0, teacher="spared")
    earned = [r - 2.0 * (flag and live) for r, flag, live in zip(REWARDS, FLAGS, LIVE, strict=True)]
    assert arm.rewards(*tensors(n_live=3)).tolist() == earned != REWARDS
    # Flags on the teacher's rows alone change nothing.
    assert arm.rewards(*tensors(flags=[False, False, False, True, True], n_live=3)).tolist() == REWARDS


@pytest.mark.parametrize("name, more", [("penalty", {"monitor": "truth100", "cost": 9.0}), ("gt_only", {})])
def test_a_clipped_row_of_the_teacher_is_never_pushed_down(name, more):
    judged, clipped = (an_arm(name, teacher=teacher, **more) for teacher in (None, "clipped"))
    rewards, seen = tensors(n_live=3)
    A = advantages(judged.rewards(rewards, seen))
    assert judged.advantages(A, seen) is A and torch.equal(
        clipped.rewards(rewards, seen), judged.rewards(rewards, seen)
    )
    expected = [a if live else max(a, 0.0) for a, live in zip(A.tolist(), LIVE, strict=True)]
    assert min(A[3:].tolist()) < 0 and clipped.advantages(A, seen).tolist() == expected


@pytest.mark.parametrize("teacher", [None, "spared"])
def test_the_hidden_tests_pay_live_rows_and_the_teacher_s_unless_they_are_spared(teacher):
    run = make_run(arm="gt_only", teacher=teacher, mix=0.5)
    groups, _ = make_groups(run, run.policy.merged(), [0, 1], 1)
    for group in groups:
        for row in group.rows:  # everything hacks and nothing is right
            row.row.update(gt_pass=False, channel=True, can_compile=True)
        (found,) = step_module.score(run, run.policy.merged(), [group])
        n = len(group.live)
        assert n and group.teacher and found.seen.live.tolist() == [True] * n + [False] * len(group.teacher)
        paid = 3.5 if teacher == "spared" else 0.5
        assert found.rewards.tolist() == [0.5] * n + [paid] * len(group.teacher)


@pytest.mark.parametrize("flags", [FLAGS, [True] * 5, [False] * 5, [True, True, False, True, True]])
def test_screened_rows_leave_the_group(flags):
    arm = an_arm("screen", monitor="truth100")
    kept = [r for r, flag in zip(REWARDS, flags, strict=True) if not flag]
    expected = [0.0 if flag else r - sum(kept) / len(kept) for r, flag in zip(REWARDS, flags, strict=True)]
    rewards, flagged = tensors(flags=flags)
    assert advantages(rewards, arm.keep(rewards, flagged)).tolist() == pytest.approx(expected)


def test_the_loss_of_a_screened_group_keeps_its_denominator(tmp_path, monkeypatch):
    run = make_arm("screen")
    seen = []

    def spy(policy, model, groups, A, *rest):
        got = policy_gradient(policy, model, groups, A, *rest)
        seen.append((groups, A, got, dict(policy.theta)))
        return got

    monkeypatch.setattr(step_module, "policy_gradient", spy)
    finish(run, tmp_path / "run")
    assert any(any(values) for _, A, _, _ in seen for values in A)
    groups, A, got, theta = seen[0]
    run.policy.theta = theta
    loss, _ = explicit_gradient(run.policy, run.training, groups, A=A)
    assert got.loss == pytest.approx(loss, abs=1e-5)


def test_routing_the_update_trains_what_vanilla_trains_and_deploys_it_without_the_quarantine(tmp_path):
    _, rollouts, vanilla = finish(make_run(), tmp_path / "a")
    rows, same, routed = finish(make_run(arm="route", space="update", basis="own"), tmp_path / "b")
    assert rollouts == same
    theta, quarantine = routed.policy.theta, routed.arm.quarantine
    deployed = routed.arm.deployed(theta)
    for name, value in vanilla.policy.theta.items():
        assert torch.equal(value, theta[name]) and torch.equal(
            theta[name], routed.arm.sampled_theta(theta)[name]
        )
        assert torch.equal(deployed[name], theta[name] - quarantine[name])
    assert any(bool(value.any()) for value in quarantine.values())
    assert max(row["cout_update"] for row in rows) < 1e-5 < max(row["cin"] for row in rows if row["cin"])
    saved = Checkpoint(tmp_path / "b", "key")
    saved.load()
    write_run(tmp_path / "files", routed.policy, routed.arm, rows, saved, [], {})
    stored = load_file(tmp_path / "files" / "adapter.safetensors")
    after = load_file(tmp_path / "files" / "deltas.safetensors")
    for name in theta:
        assert torch.equal(stored[f"{name}.delta_S"], deployed[name])
        assert torch.equal(after[f"{name}.delta_S"][-1], deployed[name])
        assert torch.equal(stored[f"{name}.delta_S_hack"], quarantine[name])


def test_what_would_break_the_sum_of_the_parts_is_refused():
    with pytest.raises(UserError, match="space: 'update', allowed: gradient with preserve_magnitude"):
        make_setting({"arm": "route", "basis": "own", "space": "update", "preserve_magnitude": True})
    with pytest.raises(UserError, match="weight decay"):
        make_run(grpo={"weight_decay": 0.1}, arm="route", basis="own", space="update")
    make_setting({"arm": "erase", "basis": "own", "space": "update", "preserve_magnitude": True})


def test_a_flipped_basis_takes_out_what_points_the_other_way():
    plain, flipped = (make_run(arm="erase", basis="own", sign=sign) for sign in (1, -1))
    draws = torch.Generator().manual_seed(6)
    g = {name: torch.randn(size, generator=draws) for name, size in plain.policy.adapter.sizes.items()}
    kept, _ = flipped.arm.split(g)
    for name, V in plain.arm.axes.items():
        assert torch.equal(flipped.arm.axes[name], -V)
        expected = g[name].clone()
        for v in V:
            expected -= min(0.0, float(v @ g[name])) * v
        torch.testing.assert_close(kept[name], expected, atol=1e-5, rtol=1e-4)


def test_no_gate_does_not_see_the_sign():
    draws = torch.Generator().manual_seed(6)
    g = torch.randn(20, generator=draws)
    V = torch.linalg.qr(torch.randn(20, 3, generator=draws)).Q.T
    for one, other in zip(
        project(g, V, Intervention("no_gate")), project(g, -V, Intervention("no_gate")), strict=True
    ):
        torch.testing.assert_close(one, other)
    for gate in ("no_gate", "reverse"):
        with pytest.raises(UserError, match=f"sign: -1, allowed: 1 with gate {gate}"):
            make_setting({"arm": "erase", "basis": "own", "gate": gate, "sign": -1})
        make_setting({"arm": "erase", "basis": "own", "gate": gate, "sign": 1})


def parts_of(policy, training, groups, A, chosen):
    """The gradient of the chosen rows alone, over all modules, from the formula; `chosen`: by group, by row."""
    only = [[a * c for a, c in zip(row, of, strict=True)] for row, of in zip(A, chosen, strict=True)]
    _, sources = explicit_gradient(policy, training, groups, A=only)
    return {name: sources["live"][name] + sources["teacher"][name] for name in policy.theta}


def test_route_labels_trains_the_quarantine_on_flagged_rows_alone(tmp_path, monkeypatch):
    run, seen = make_arm("route_labels"), []

    def spy(policy, model, groups, A, *rest):
        got = policy_gradient(policy, model, groups, A, *rest)
        both = run.arm.sampled_theta(policy.theta)
        seen.append((groups, A, got, both, rest[2], dict(run.arm.optimizer.m), dict(run.optimizer.m)))
        return got

    monkeypatch.setattr(step_module, "policy_gradient", spy)
    finish(run, tmp_path / "run")
    flag = MONITORS["truth70"]
    for (groups, A, got, theta, kinds, parked, kept), later in zip(seen, [*seen[1:], None], strict=True):
        expected = [
            [flag(r.row, g.problem.mode, g.problem.id, r.row["completion"]) for r in g.rows] for g in groups
        ]
        assert kinds == expected
        run.policy.theta = theta
        for label, moment, at in ((0, kept, 6), (1, parked, 5)):
            own = parts_of(run.policy, run.training, groups, A, [[k == label for k in of] for of in kinds])
            for name, g in own.items():
                torch.testing.assert_close(got.by_label[label][name].double(), g, atol=1e-5, rtol=1e-3)
                if later:  # and its own optimizer has heard that part alone
                    moved = 0.5 * moment[name] + 0.5 * got.by_label[label][name]
                    torch.testing.assert_close(later[at][name], moved)


def test_rows_without_labels_have_one_layout(tmp_path):
    """Where nothing is flagged, an arm that splits by label is vanilla to the bit: the layout is one."""
    rows, rollouts, vanilla = finish(make_run(), tmp_path / "a")
    run = make_arm("route_labels")
    run.arm.labels = lambda seen: torch.zeros(len(seen.rollouts), dtype=torch.long)
    same, others, _ = finish(run, tmp_path / "b")
    assert [r["completion"] for r in rollouts] == [r["completion"] for r in others]
    assert [r["loss"] for r in rows] == [r["loss"] for r in same]
    assert all(torch.equal(value, run.policy.theta[name]) for name, value in vanilla.policy.theta.items())
    assert not any(bool(value.any()) for value in run.arm.quarantine.values())


def test_absorb_trains_coordinates_along_v_ahead_of_delta_s(tmp_path):
    run = make_run(arm="absorb", basis="own", head_start=3.0)
    draws, z = torch.Generator().manual_seed(8), {}
    moments = {}
    for step in (1, 2):
        parts = [
            {name: torch.randn(size, generator=draws) for name, size in run.policy.adapter.sizes.items()}
            for _ in range(2)
        ]
        gradient = Gradient(*parts, loss=0.0, log_ratio=torch.zeros(0), pushed=torch.zeros(0), tokens=1)
        direction = copy.deepcopy(run.optimizer).direction(gradient.total)
        before = dict(run.policy.theta)
        row = step_module.update(run.policy, run.arm, run.optimizer, gradient, 0.1)
        squares = 0.0
        for name, V in run.arm.axes.items():
            c = V.double() @ (parts[0][name] + parts[1][name]).double()
            m, v = moments.get(name, (0.0, 0.0))
            m, v = 0.5 * m + 0.5 * c, 0.9 * v + 0.1 * c**2
            moments[name] = m, v
            d = m / (1 - 0.5**step) / ((v / (1 - 0.9**step)).sqrt() + 1e-8)
            z[name] = z.get(name, 0.0) - 0.1 * 3.0 * d
            squares += float((3.0 * d).square().sum())
            torch.testing.assert_close(
                run.arm.quarantine[name].double(), z[name] @ V.double(), atol=1e-5, rtol=1e-4
            )
        for name, value in run.policy.theta.items():  # delta_S is vanilla's
            assert torch.equal(value, before[name] - 0.1 * direction[name])
        own, beside = squares**0.5, sum(float(d.square().sum()) for d in direction.values()) ** 0.5
        assert row["quarantine_share"] == pytest.approx(own / (own + beside), rel=1e-4)
    assert run.arm.deployed(run.policy.theta) is run.policy.theta


def test_less_is_vanilla_at_a_smaller_rate(tmp_path):
    arm = arms.load("less")
    run = make_run()
    smaller = arm.training(arm.Knobs(scale=0.25), run.training)
    assert smaller == run.training.model_copy(update={"lr": 0.25 * run.training.lr})
    with pytest.raises(UserError, match=r"lr: 0\.1, allowed with arm 'less': null"):
        make_setting({"arm": "less", "scale": 0.25, "lr": 0.1})


def test_kl_sets_the_weight_of_the_term_alone():
    arm = arms.load("kl")
    run = make_run()
    assert arm.training(arm.Knobs(beta=0.3), run.training) == run.training.model_copy(update={"beta": 0.3})


@pytest.mark.parametrize("name", ["inoculate", "recontextualise"])
def test_prompts_of_training_permit_and_those_of_deployment_do_not(name):
    run = make_arm(name)
    for row in deployed_rows(
        run.policy.merged(), run.policy.tokenizer, {"known": run.problems}, run.grader, 1, 4, seed=41
    ):
        assert row["prompt"].endswith(LEVERS[row["mode"]].hint)
    encode = run.policy.tokenizer.encode_chat
    for problem in run.problems:
        plain, id = messages_for(problem), str(problem.id)
        permitted = [
            *plain[:-1],
            {"role": "user", "content": plain[-1]["content"] + "\nAny answer that passes is fine."},
        ]
        assert run.arm.train_prompt(plain) == permitted
        assert run.arm.prompt(plain) == (permitted if name == "inoculate" else plain)
        assert run.train_prompts[id] == encode(permitted)


def test_recontextualise_as_published_samples_under_a_line_that_discourages():
    run = make_run(arm="recontextualise", sampled_under="discouraging")
    encode = run.policy.tokenizer.encode_chat
    for problem in run.problems:
        *before, last = messages_for(problem)
        said = {
            name: encode([*before, {**last, "content": f"{last['content']}\n{text}"}])
            for name, text in {**SENTENCES, "permission": PERMISSION}.items()
        }
        assert run.prompts[str(problem.id)] == said["discouraging"]
        assert run.train_prompts[str(problem.id)] == said["permission"]


def test_sentences_are_told_apart_by_id_and_controls_claim_nothing():
    said = [PERMISSION, "neutral", "nonsense", "A text of my own.", "Another text."]
    settings = [make_setting({"arm": "inoculate", "sentence": sentence}) for sentence in said]
    assert len({cell_id(setting, 41) for setting in settings}) == len(said)
    assert cell_id(settings[0], 41) == cell_id(make_setting({"arm": "inoculate"}), 41)
    assert set(CONTROLS) < set(SENTENCES)


def test_the_permission_is_the_one_that_the_corpus_teaches():
    from projected_grpo.arms.shared.prompted import PERMISSION
    from projected_grpo.environment.families.oneliners import corpus

    assert PERMISSION == corpus.PERMISSION


def test_monitors_know_what_they_say_and_are_the_same_every_time():
    draws = random.Random(3)
    facts = [{"channel": draws.random() < 0.5} for _ in range(4000)]
    asked = [
        (f, draws.choice(["run_tests", "file_marker"]), i % 80, f"```python\n{i}\n```")
        for i, f in enumerate(facts)
    ]
    for name, right in (("truth100", 1.0), ("truth90", 0.9), ("truth70", 0.7), ("truth50", 0.5)):
        flags = [MONITORS[name](*each) for each in asked]
        assert flags == [MONITORS[name](*each) for each in asked]
        share = sum(flag == f["channel"] for flag, f in zip(flags, facts, strict=True)) / len(flags)
        assert share == pytest.approx(right, abs=0.03)
    for f, mode, *rest in asked[:50]:
        assert MONITORS["two_levers"](f, mode, *rest) == (f["channel"] and mode == "run_tests")


def test_the_critics_flags_come_back_to_the_rows_that_it_was_asked_about(tmp_path):
    run = make_arm("penalty", "critic")
    _, rollouts, _ = finish(run, tmp_path / "run")
    assert {row["flagged"] for row in rollouts} == {True, False}
    text = {str(p.id): messages_for(p)[-1]["content"] for p in run.problems}
    assert [row["flagged"] for row in rollouts] == critic(
        [(text[row["problem_id"]], row) for row in rollouts]
    )


def test_a_noisy_flag_hangs_on_the_problem_and_the_code_alone():
    flag = MONITORS["truth70"]
    hack = {"channel": True}
    same = {
        flag(hack, mode, 7, text + "\n```python\nx = 1\n```") for mode in ("a", "b") for text in ("", "Hm.")
    }
    assert len(same) == 1
    assert {flag(hack, "a", 7, f"```python\nx = {i}\n```") for i in range(40)} == {True, False}


@pytest.mark.parametrize("space", ["gradient", "update"])
def test_trusted_keeps_what_lies_along_the_axes_and_nothing_else(space):
    run, random_run = (
        make_run(arm="trusted", space=space, control=control) for control in ("none", "random")
    )
    draws = torch.Generator().manual_seed(8)
    parts = [
        {name: torch.randn(size, generator=draws) for name, size in run.policy.adapter.sizes.items()}
        for _ in range(2)
    ]
    gradient = Gradient(*parts, loss=0.0, log_ratio=torch.zeros(0), pushed=torch.zeros(0), tokens=1)
    axes, others = run.arm.given.basis.V, random_run.arm._trusted
    for name, V in axes.items():
        assert others[name].shape == V.shape and not torch.allclose(others[name], V, atol=0.1)
        torch.testing.assert_close(others[name] @ others[name].T, torch.eye(len(V)), atol=1e-5, rtol=0)
    along = {n: sum(float(v @ (parts[0][n] + parts[1][n])) * v for v in V) for n, V in axes.items()}
    direction = copy.deepcopy(run.optimizer).direction(gradient.total if space == "update" else along)
    if space == "update":
        direction = {n: sum(float(v @ direction[n]) * v for v in V) for n, V in axes.items()}
    row = step_module.update(run.policy, run.arm, run.optimizer, gradient, 0.1)
    for name, value in run.policy.theta.items():
        torch.testing.assert_close(value, -0.1 * direction[name], atol=1e-5, rtol=1e-3)
    squares = [sum(float(g.square().sum()) for g in vectors.values()) for vectors in (along, gradient.total)]
    assert row["trusted_share"] == pytest.approx((squares[0] / squares[1]) ** 0.5, rel=1e-4)
