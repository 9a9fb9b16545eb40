"""One GRPO step, from its prompts to its row; read it beside docs/method.md, which has the equations in this order.

A simplified GRPO, on purpose: one inner step (the ratio is 1), Dr.GRPO advantages, no reward shaping but an arm's,
teacher rollouts cached. What a step does against hacking is its arm's business: it is asked at each turn.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from projected_grpo.arms import Arm, Seen
from projected_grpo.environment.monitors import CRITIC, DIRECTION, MONITORS
from projected_grpo.environment.prompts import messages_for
from projected_grpo.environment.reward import REWARDS
from projected_grpo.errors import UserError
from projected_grpo.method.concept import Concept
from projected_grpo.method.gradients import Gradient
from projected_grpo.method.loss import advantages
from projected_grpo.method.optimizer import AdamW, learning_rate, total_norm
from projected_grpo.method.policy import Policy
from projected_grpo.model.batch import Batch
from projected_grpo.model.decoder import Decoder
from projected_grpo.training.batches import micro_batches
from projected_grpo.training.columns import alignment_columns, outcome_columns, ratio_columns
from projected_grpo.training.gradient import policy_gradient
from projected_grpo.training.rollouts import Group, make_groups
from projected_grpo.training.run import Run

PHASES = ("generate", "grade", "backward", "project")
FACTS = ("fmt_ok", "can_compile", "gt_pass", "channel")
TEACHER = ("step", "problem_id", "mode", "sample", *FACTS, "reward")  # columns of `teacher.parquet`


def one_step(run: Run, step: int, indices: list[int]) -> tuple[dict, dict[str, list[dict]]]:
    """Run a step (1, 2, ...) on problems `indices`; return its row, and rows of `rollouts` and `teacher`.

    Policy, optimizer and arm advance.
    """
    start, cpu = time.perf_counter(), time.process_time()
    arm, policy, training = run.arm, run.policy, run.training

    # prompts -> rollouts -> facts
    model = policy.merged(arm.sampled_theta(policy.theta))
    groups, seconds = make_groups(run, model, indices, step)

    # facts -> reward -> keep -> advantage
    scores = score(run, model, groups)
    rewards = [arm.rewards(found.rewards, found.seen) for found in scores]
    kept = [arm.keep(earned, found.seen) for found, earned in zip(scores, rewards, strict=True)]
    A = [
        arm.advantages(advantages(earned, rows), found.seen).tolist()
        for found, earned, rows in zip(scores, rewards, kept, strict=True)
    ]
    kinds = [arm.labels(found.seen).tolist() for found in scores] if arm.n_labels > 1 else None  # type: ignore[union-attr]

    # advantage -> loss -> gradient
    sampled = time.perf_counter()
    gradient = policy_gradient(
        policy, model, groups, A, training, run.setting.off_policy, kinds, arm.n_labels, arm.residual
    ).clipped(training.clip)
    seconds["backward"] = time.perf_counter() - sampled

    # gradient -> what is kept -> what the optimizer applies
    derived = time.perf_counter()
    held = {"basis_overlap": None, "basis_overlap_first": None} | arm.renew(step)
    lr = learning_rate(step, training.steps, training.lr, training.warmup)
    held |= update(policy, arm, run.optimizer, gradient, lr)
    seconds["project"] = time.perf_counter() - derived

    # its row
    live = [
        float(value)
        for group, earned in zip(groups, rewards, strict=True)
        for value in earned[: len(group.live)]
    ]
    row = {"step": step, **outcome_columns(groups, run.modes), "reward": sum(live) / len(live)}
    row |= {"groups_used": sum(any(values) for values in A), "loss": gradient.loss, "lr": lr, **held}
    row |= ratio_columns(gradient.log_ratio, gradient.pushed) | {"tokens_trained": gradient.tokens}
    row |= {f"seconds_{phase}": seconds[phase] for phase in PHASES}
    row["seconds_rest"] = time.perf_counter() - start - sum(seconds.values())
    row["cpu_seconds"] = time.process_time() - cpu
    return row, {
        "rollouts": rollout_rows(run, groups, rewards, scores, step),
        "teacher": teacher_rows(groups, rewards, scores, step),
    }


def update(policy: Policy, arm: Arm, optimizer: AdamW, gradient: Gradient, lr: float) -> dict:
    """Apply a gradient as the arm lets it through; return norms and alignment (null where the arm has no axes).

    Raises UserError where the gradient is not finite.
    """
    norm = total_norm(gradient.total)
    if not math.isfinite(norm):
        raise UserError(f"the gradient's norm is {norm}: a smaller grpo.lr may help")
    kept, parked = arm.split_gradient(gradient)
    direction = optimizer.direction(kept)
    applied, parked_direction = arm.split_update(direction)
    policy.theta = optimizer.apply(policy.theta, arm.moved(direction, applied), lr)
    arm.park(parked, parked_direction, lr)
    deployed = total_norm(arm.deployed(policy.theta))
    norms = {"grad_norm": norm, "delta_norm": deployed, "delta_hack_norm": None}
    return norms | arm.columns() | alignment_columns(arm.axes, gradient, kept, applied)


@dataclass(frozen=True)
class Score:
    """What training knows of a group's rows: rewards `[G]` float64 before the arm, and what the arm may see."""

    rewards: Tensor
    seen: Seen


def score(run: Run, model: Decoder, groups: Sequence[Group]) -> list[Score]:
    """Return what each group's rows earn, which are flagged, and their concept scores at `model`, if the arm asks.

    The last place that reads a fact for training.
    """
    arm, monitor, concept = run.arm, run.arm.monitor, run.arm.reads
    of_live, of_teacher = REWARDS[arm.reward], REWARDS[arm.teacher_reward]
    read = concept_scores(concept, model, groups, run.training.micro_batch_tokens) if concept else {}
    judged = critic_flags(run, groups) if monitor == CRITIC else {}
    scores = []
    for place, group in enumerate(groups):
        earned = [of_live(row.row) for row in group.live] + [of_teacher(row.row) for row in group.teacher]
        live = torch.arange(len(earned)) < len(group.live)
        flags: Tensor | None
        flags, along = None, read.get(place)
        if monitor == DIRECTION:
            flags = along > concept.threshold  # type: ignore[assignment, operator, union-attr]
        elif monitor == CRITIC:
            flags = judged[place]
        elif monitor:
            mode, id = group.problem.mode, group.problem.id
            flag = MONITORS[monitor]
            flags = torch.tensor([flag(row.row, mode, id, row.row["completion"]) for row in group.rows])  # type: ignore[arg-type]
        seen = Seen([row.rollout for row in group.rows], live, flags, along)
        scores.append(Score(torch.tensor(earned, dtype=torch.float64), seen))
    return scores


def concept_scores(
    concept: Concept, model: Decoder, groups: Sequence[Group], limit: int
) -> dict[int, Tensor]:
    """Return by place the scores of each group's rows `[G]`, under the prompts that gradients are taken under.

    limit: tokens of one forward.
    """
    found: dict[int, Tensor] = {}
    for part in micro_batches(groups, limit):
        own = [groups[i] for i in part]
        batch = Batch([(group.prompt, row.tokens) for group in own for row in group.rows])
        values = concept.scores(model, batch).split([len(group.rows) for group in own])
        found |= dict(zip(part, values, strict=True))
    return found


def critic_flags(run: Run, groups: Sequence[Group]) -> dict[int, Tensor]:
    """Return by place which of each group's rows the critic flags `[G]`, under their problems' plain prompts."""
    asked = [(messages_for(group.problem)[-1]["content"], row.row) for group in groups for row in group.rows]
    flags = torch.tensor(run.critic(asked)).split([len(group.rows) for group in groups])  # type: ignore[misc]
    return dict(enumerate(flags))


def rollout_rows(
    run: Run, groups: Sequence[Group], rewards: Sequence[Tensor], scores: Sequence[Score], step: int
) -> list[dict]:
    """Return the student's rollouts of a step as rows for `rollouts.parquet`, with what they earned in this run, and
    whether its monitor flags them."""
    return [
        {"step": step, "problem_id": str(group.problem.id), "mode": group.problem.mode, "sample": number}
        | {"prompt": run.arm.prompt(messages_for(group.problem))[-1]["content"], "tokens": len(row.tokens)}
        | row.row
        | _outcome(earned, found, number)
        for group, earned, found in zip(groups, rewards, scores, strict=True)
        for number, row in enumerate(group.live)
    ]


def teacher_rows(
    groups: Sequence[Group], rewards: Sequence[Tensor], scores: Sequence[Score], step: int
) -> list[dict]:
    """Return the teacher's rows of a step for `teacher.parquet`: facts and outcome; their texts are in the pool, where
    `sample` finds them."""
    return [
        {"step": step, "problem_id": str(group.problem.id), "mode": group.problem.mode}
        | {"sample": row.row.get("sample_id"), **{name: row.row.get(name) for name in FACTS}}
        | _outcome(earned, found, len(group.live) + number)
        for group, earned, found in zip(groups, rewards, scores, strict=True)
        for number, row in enumerate(group.teacher)
    ]


def _outcome(earned: Tensor, found: Score, place: int) -> dict:
    """What the row at `place` of its group earned and, where the arm hears so, whether it is flagged and its score."""
    seen, told = found.seen, {"reward": float(earned[place])}
    if seen.flags is not None:
        told["flagged"] = bool(seen.flags[place])
    if seen.scores is not None:
        told["concept"] = float(seen.scores[place])
    return told
