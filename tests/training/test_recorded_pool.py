"""A pool recorded elsewhere, without tokens and log-probs, in training: its gradient against the formula."""

from dataclasses import replace

import pytest
import tiny
import torch
from test_probe import SHARED, Words, make_policy
from test_train import GRPO, advantages_of, explicit_gradient

from projected_grpo.cells.hyper import Training
from projected_grpo.environment.problems import Problem
from projected_grpo.environment.reward import foolable
from projected_grpo.files import read_jsonl
from projected_grpo.training.columns import ratio_columns
from projected_grpo.training.gradient import policy_gradient
from projected_grpo.training.rollouts import Group
from projected_grpo.training.teacher_pool import read_pool

pytestmark = pytest.mark.skipif(not SHARED.exists(), reason="the recorded pool is not here")


@pytest.fixture
def pool():
    return read_pool(SHARED, Words())


def test_recorded_rows_are_tokenised_and_have_no_log_probs(pool):
    recorded = [row for path in sorted(SHARED.iterdir()) for row in read_jsonl(path)]
    assert "tokens" not in recorded[0] and "logprobs" not in recorded[0]
    assert sum(map(len, pool.values())) == len(recorded) == 1248
    for row in recorded[::97]:
        found = [r for r in pool[str(row["problem_id"])] if r.row["sample_id"] == row["sample_id"]]
        assert [(r.tokens, r.logprobs, foolable(r.row)) for r in found] == [
            ([*Words().encode(row["completion"]), Words.end], None, row["reward"])
        ]


def test_one_policy_gradient_step_on_recorded_rollouts_equals_the_formula(pool, monkeypatch):
    monkeypatch.setattr(tiny, "CONFIG", replace(tiny.CONFIG, vocab_size=500))
    policy = make_policy(tokenizer=Words())
    policy.theta = tiny.random_theta(policy.adapter)
    varied = [rows for rows in pool.values() if len({foolable(row.row) for row in rows}) > 1][:2]
    groups = [
        Group(
            problem=Problem(id=rows[0].row["problem_id"], messages=(), method="f", mode="run_tests"),
            prompt=Words().encode_chat(rows[0].row["prompt"])[:200],
            live=rows[:1],
            teacher=rows[1:],
        )
        for rows in varied
    ]
    most = max(len(row.tokens) for rows in varied for row in rows)
    training = Training(**GRPO | {"group": 8, "max_new": most})
    A = advantages_of(groups)
    loss, expected = explicit_gradient(policy, training, groups)
    got = policy_gradient(policy, policy.merged(), groups, A, training, False)
    assert got.loss == pytest.approx(loss, rel=1e-3)
    for mine, source in ((got.student, "live"), (got.teacher, "teacher")):
        assert any(bool(g.any()) for g in mine.values())
        for name, g in expected[source].items():
            torch.testing.assert_close(mine[name].double(), g, atol=1e-3 * float(g.abs().max()), rtol=0)
    # Without the teacher's log-probs there is no ratio to take seriously, and none is logged.
    unknown = policy_gradient(policy, policy.merged(), groups, A, training, True)
    assert all(torch.equal(unknown.teacher[name], g) for name, g in got.teacher.items())
    assert set(ratio_columns(unknown.log_ratio, unknown.pushed).values()) == {None}
