"""The arms' mechanics, each against a loop written from its formula."""

import random

import pytest
import torch
from test_train import explicit_gradient, finish, make_arm, make_run

from projected_grpo import arms
from projected_grpo.cells.row_setting import make_setting
from projected_grpo.environment.monitors import MONITORS
from projected_grpo.environment.prompts import messages_for
from projected_grpo.errors import UserError
from projected_grpo.method.loss import advantages
from projected_grpo.training import step as step_module
from projected_grpo.training.gradient import policy_gradient

REWARDS = [3.5, 0.5, 3.5, 0.0, 3.5]
FLAGS = [True, False, False, True, False]


def tensors(rewards=REWARDS, flags=FLAGS):
    return torch.tensor(rewards, dtype=torch.float64), torch.tensor(flags)


def an_arm(name, **knobs):
    setting = make_setting({"arm": name, **knobs}, "test")
    return setting.defence(setting.knobs, None)


def test_a_penalty_is_taken_off_flagged_rows_before_the_mean():
    arm = an_arm("penalty", monitor="oracle", cost=2.0)
    earned = [r - 2.0 * flag for r, flag in zip(REWARDS, FLAGS, strict=True)]
    mean = sum(earned) / len(earned)
    assert advantages(arm.rewards(*tensors())).tolist() == pytest.approx([r - mean for r in earned])


@pytest.mark.parametrize("flags", [FLAGS, [True] * 5, [False] * 5, [True, True, False, True, True]])
def test_screened_rows_leave_the_group(flags):
    arm = an_arm("screen", monitor="oracle")
    kept = [r for r, flag in zip(REWARDS, flags, strict=True) if not flag]
    expected = [0.0 if flag else r - sum(kept) / len(kept) for r, flag in zip(REWARDS, flags, strict=True)]
    rewards, flagged = tensors(flags=flags)
    assert advantages(rewards, arm.keep(rewards, flagged)).tolist() == pytest.approx(expected)


def test_the_loss_of_a_screened_group_keeps_its_denominator(tmp_path, monkeypatch):
    run = make_arm("screen")
    seen = []

    def spy(policy, model, groups, A, training, off_policy):
        got = policy_gradient(policy, model, groups, A, training, off_policy)
        seen.append((groups, A, got, dict(policy.theta)))
        return got

    monkeypatch.setattr(step_module, "policy_gradient", spy)
    finish(run, tmp_path / "run")
    assert any(any(values) for _, A, _, _ in seen for values in A)
    groups, A, got, theta = seen[0]
    run.policy.theta = theta
    loss, _ = explicit_gradient(run.policy, run.training, groups, A=A)
    assert got.loss == pytest.approx(loss, abs=1e-5)


def test_less_is_vanilla_at_a_smaller_rate(tmp_path):
    arm = arms.load("less")
    run = make_run()
    smaller = arm.training(arm.Knobs(scale=0.25), run.training)
    assert smaller == run.training.model_copy(update={"lr": 0.25 * run.training.lr})
    with pytest.raises(UserError, match=r"lr: 0\.1, allowed with arm 'less': null"):
        make_setting({"arm": "less", "scale": 0.25, "lr": 0.1}, "test")


def test_kl_sets_the_weight_of_the_term_alone():
    arm = arms.load("kl")
    run = make_run()
    assert arm.training(arm.Knobs(beta=0.3), run.training) == run.training.model_copy(update={"beta": 0.3})


@pytest.mark.parametrize("name", ["inoculate", "recontextualise"])
def test_prompts_of_training_permit_and_those_of_deployment_do_not(name):
    run = make_arm(name)
    encode = run.policy.tokenizer.encode_chat
    for problem in run.problems:
        plain, id = messages_for(problem), str(problem.id)
        permitted = [
            *plain[:-1],
            {"role": "user", "content": plain[-1]["content"] + "\nAny answer that passes is fine."},
        ]
        assert run.arm.train_prompt(plain) == permitted
        assert run.arm.prompt(plain) == (permitted if name == "inoculate" else plain)
        assert run.plain_prompts[id] == encode(plain) and run.train_prompts[id] == encode(permitted)


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
    for name, right in (("oracle", 1.0), ("noisy0.9", 0.9), ("noisy0.7", 0.7)):
        flags = [MONITORS[name](*each) for each in asked]
        assert flags == [MONITORS[name](*each) for each in asked]
        share = sum(flag == f["channel"] for flag, f in zip(flags, facts, strict=True)) / len(flags)
        assert share == pytest.approx(right, abs=0.03)
    for f, mode, *rest in asked[:50]:
        assert MONITORS["half"](f, mode, *rest) == (f["channel"] and mode == "run_tests")


def test_a_noisy_flag_hangs_on_the_problem_and_the_code_alone():
    flag = MONITORS["noisy0.7"]
    hack = {"channel": True}
    same = {
        flag(hack, mode, 7, text + "\n```python\nx = 1\n```") for mode in ("a", "b") for text in ("", "Hm.")
    }
    assert len(same) == 1
    assert {flag(hack, "a", 7, f"```python\nx = {i}\n```") for i in range(40)} == {True, False}
