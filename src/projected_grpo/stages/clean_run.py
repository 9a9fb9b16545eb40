"""A short run with nothing to hack, on problems of its own, and the axes that its updates lie along (arm `trusted`).

Its prompts name no lever and the hidden tests alone pay, so nothing that it learns is a hack. It has no teacher. Its
problems are neither trained on nor those that what is deployed is judged on.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from projected_grpo.arms import Given
from projected_grpo.arms.gt_only import GtOnly  # by import, not by its name: its code is this stage's
from projected_grpo.cells.hyper import Training
from projected_grpo.cells.setting import Setting
from projected_grpo.environment.grade import Grader
from projected_grpo.environment.problems import Problem, load_problems
from projected_grpo.errors import UserError
from projected_grpo.method.basis import Basis
from projected_grpo.method.optimizer import AdamW
from projected_grpo.method.policy import Policy
from projected_grpo.training.run import Run
from projected_grpo.training.schedule import problem_order
from projected_grpo.training.step import one_step

STREAM = (1 << 32) + 3  # apart from every other sampling stream of a replication


def other_problems(path: Path, first: int, n: int, least: int) -> list[Problem]:
    """Return at most `n` problems from number `first` on (from 0), without a lever.

    Raises UserError where there are fewer than `least`, or one has no hidden tests.
    """
    problems = [replace(problem, mode="gt_only") for problem in load_problems(path)[first : first + n]]
    if len(problems) < least:
        raise UserError(
            f"{path}: {len(problems)} problems from number {first + 1} on, where nothing is trained or judged; "
            f"the clean run of arm 'trusted' needs {least}"
        )
    for problem in problems:
        if not problem.tests:
            raise UserError(f"{path}: problem {problem.id!r} has no tests; the clean run needs them")
    return problems


def clean_run(policy: Policy, problems: list[Problem], grader: Grader, training: Training, seed: int) -> Run:
    """Return the run, ready to be trained; its policy is trained in place."""
    setting = Setting(arm="gt_only", knobs=GtOnly.Knobs(), mix=0.0).model_copy(update={"stream": STREAM})
    optimizer = partial(AdamW, betas=training.betas, weight_decay=training.weight_decay)
    arm = GtOnly(setting.knobs, Given(seed, policy, optimizer))
    return Run(seed, setting, training, policy, problems, {}, grader, arm, optimizer(policy.theta))


def train_clean(
    run: Run, progress: Callable[[dict], None] = lambda row: None
) -> tuple[list[dict], dict[str, Tensor]]:
    """Run all steps; return their rows, and the update of each step `[steps, r]` per module."""
    updates: dict[str, list[Tensor]]
    rows, updates = [], {name: [] for name in run.policy.theta}
    order = problem_order(run.seed, len(run.problems), run.training.prompts, run.training.steps)
    for step, indices in enumerate(order, 1):
        before = run.policy.theta
        row, _ = one_step(run, step, indices)
        rows.append(row)
        progress(row)
        for name, after in run.policy.theta.items():
            updates[name].append(after - before[name])
    return rows, {name: torch.stack(own) for name, own in updates.items()}


def update_axes(updates: dict[str, Tensor], metadata: dict[str, str]) -> Basis:
    """Return the right singular vectors of the updates per module, largest first; modules that never moved drop out."""
    V, S = {}, {}
    for name, D in updates.items():
        _, values, rows = torch.linalg.svd(D, full_matrices=False)
        rank = int((values[0] * max(D.shape) * torch.finfo(values.dtype).eps < values).sum())
        if rank:
            V[name], S[name] = rows[:rank], values[:rank]
    return Basis(V, S, {**metadata, "modules": json.dumps(list(V))})
