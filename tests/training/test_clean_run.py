"""The clean run of arm `trusted`: what it may see, and the axes of its updates against a second training."""

import json

import numpy as np
import pytest
import torch
from test_train import GRPO, TinyGrader, TinyTokenizer
from tiny import tiny_adapter, tiny_model

from projected_grpo.cells.hyper import Training
from projected_grpo.environment.facts import facts, verdict
from projected_grpo.errors import UserError
from projected_grpo.files import write_jsonl
from projected_grpo.method.basis import Basis
from projected_grpo.method.policy import Policy
from projected_grpo.stages.clean_run import clean_run, other_problems, train_clean, update_axes
from projected_grpo.training.schedule import problem_order
from projected_grpo.training.step import one_step


def rows(folder, n=12, tests=("assert Solution().f(1) == 1",)):
    prompt = [{"role": "user", "content": "x and should pass all tests"}]
    write_jsonl(
        folder / "rows.jsonl",
        [
            {"id": i, "prompt": prompt, "func_name": "f", "gt_answer": list(tests), "mode": "sentinel"}
            for i in range(n)
        ],
    )
    return folder / "rows.jsonl"


class Strict(TinyGrader):
    """The tiny grader, which also says that everything is a hack where a lever is asked for."""

    def verdict(self, mode, text):
        passed = any(ord(c) % 2 for c in text[:2])
        return verdict(facts(can_compile=True, gt_pass=passed, channel=mode != "gt_only"), mode)


def make_clean(folder):
    model = tiny_model()
    adapter = tiny_adapter(model)
    policy = Policy(model, TinyTokenizer(), adapter, adapter.zeros())
    return clean_run(policy, other_problems(rows(folder), 4, 6, 3), Strict(), Training(**GRPO), 41)


def test_its_problems_are_others_and_name_no_lever(tmp_path):
    path = rows(tmp_path)
    problems = other_problems(path, 4, 6, 3)
    assert [problem.id for problem in problems] == list(range(4, 10))
    assert {problem.mode for problem in problems} == {"gt_only"}
    with pytest.raises(UserError, match="2 problems from number 11 on"):
        other_problems(path, 10, 6, 3)
    with pytest.raises(UserError, match="no tests"):
        other_problems(rows(tmp_path, tests=()), 0, 6, 3)


def test_the_axes_are_those_of_the_steps_that_it_took(tmp_path):
    seen, updates = train_clean(make_clean(tmp_path))
    assert len(seen) == GRPO["steps"] and all(row["hack_t"] is None and row["hack_s"] == 0 for row in seen)
    axes = update_axes(updates, {"seed": "41"})
    axes.save(tmp_path / "axes.safetensors")
    stored = Basis.load(tmp_path / "axes.safetensors").used(2)
    twin = make_clean(tmp_path)
    thetas = [twin.policy.theta]
    for step, indices in enumerate(problem_order(41, 6, 3, GRPO["steps"]), 1):
        one_step(twin, step, indices)
        thetas.append(twin.policy.theta)
    assert list(stored.V) == list(twin.policy.theta) == json.loads(axes.metadata["modules"])
    for name, V in stored.V.items():
        path = np.stack([theta[name].double().numpy() for theta in thetas])
        top = np.linalg.svd(np.diff(path, axis=0))[2][:2]
        np.testing.assert_allclose(V.numpy().T @ V.numpy(), top.T @ top, atol=1e-3)


def test_a_module_that_never_moved_has_no_axes(tmp_path):
    moved = torch.eye(3, 5)
    assert list(update_axes({"a": moved, "b": torch.zeros(3, 5)}, {}).V) == ["a"]
    update_axes({"b": torch.zeros(3, 5)}, {}).save(tmp_path / "none.safetensors")
    assert not Basis.load(tmp_path / "none.safetensors").used(2).V
