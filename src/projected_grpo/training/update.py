"""One policy update: gradient of the GRPO loss, intervention per module, optimizer step, diagnostics (SPEC 5, 6)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from projected_grpo.method.adapter import Parameters
from projected_grpo.method.gradients import Tape
from projected_grpo.method.loss import CLIP, grpo_loss, k3
from projected_grpo.method.optimizer import AdamW, clip_, total_norm
from projected_grpo.method.policy import Policy
from projected_grpo.method.projection import (
    Intervention,
    fired,
    mean_alignment,
    mean_null_alignment,
    project,
)
from projected_grpo.model.qwen3 import Qwen3
from projected_grpo.training.groups import Group, Packed, group_advantages, micro_batches
from projected_grpo.training.ratio import RATIO_EDGES


@dataclass
class Gradient:
    """The step's gradient by source, `[size]` per module, and what the forward saw."""

    student: Parameters
    teacher: Parameters
    loss: float
    log_ratio: Tensor  # log(student / teacher) of the teacher tokens with stored log-probs
    tokens: int  # tokens that went through the model

    @property
    def total(self) -> Parameters:
        return {name: g + self.teacher[name] for name, g in self.student.items()}


def policy_gradient(
    policy: Policy, model: Qwen3, groups: Sequence[Group], settings: dict, off_policy: bool, checkpoint: bool
) -> Gradient:
    """Return the gradient of the GRPO loss at `model` (the merged policy).

    One inner step: the old policy is the detached student, so every ratio is 1; with `off_policy` the teacher rows'
    old log-probs are the pool's (R5). Groups of equal rewards are left out unless a KL term needs them.
    """
    advantage = group_advantages(groups)
    beta = settings["beta"]
    live = [i for i, A in enumerate(advantage) if beta or any(A)]
    scale = settings["group"] * settings["max_new"] * len(groups)
    tape = Tape(policy.adapter, 2)
    loss, log_ratios, tokens = 0.0, [], 0
    for run in micro_batches([groups[i] for i in live], settings["micro_batch_tokens"]):
        chosen = [live[i] for i in run]
        packed = Packed.of([groups[i] for i in chosen], [advantage[i] for i in chosen])
        tape.labels = packed.labels.to(model.device)
        behaviour = packed.behaviour.to(model.device)
        teacher = packed.teacher.to(model.device)
        logp = model.logprobs(packed.batch, linear=tape.linear, checkpoint=checkpoint)
        old = logp.detach()
        known = teacher & ~behaviour.isnan()
        if off_policy:
            old = torch.where(known, behaviour, old)
        part = grpo_loss(logp, old, packed.advantage.to(model.device), scale)
        if beta:
            with torch.no_grad():
                reference = policy.base.logprobs(packed.batch)
            part = part + beta * k3(logp, reference).sum() / scale
        part.backward()
        loss += float(part.detach())
        log_ratios.append((logp.detach() - behaviour)[known].cpu())
        tokens += len(packed.batch.tokens)
    zeros = policy.adapter.zeros()
    grads = tape.grads or {name: torch.stack([zero, zero]) for name, zero in zeros.items()}
    return Gradient(
        student={name: grads[name][0] for name in policy.adapter.names},
        teacher={name: grads[name][1] for name in policy.adapter.names},
        loss=loss,
        log_ratio=torch.cat(log_ratios) if log_ratios else torch.zeros(0),
        tokens=tokens,
    )


def ratio_columns(log_ratio: Tensor) -> dict:
    """Return mean ratio, the shares beyond each clip bound and the histogram over RATIO_EDGES; nulls if empty."""
    if not len(log_ratio):
        return {"ratio_mean": None, "ratio_clip_low": None, "ratio_clip_high": None, "ratio_hist": None}
    ratio = log_ratio.double().exp()
    bins = torch.bucketize(log_ratio, torch.tensor(RATIO_EDGES))
    return {
        "ratio_mean": float(ratio.mean()),
        "ratio_clip_low": float((ratio < 1 - CLIP).double().mean()),
        "ratio_clip_high": float((ratio > 1 + CLIP).double().mean()),
        "ratio_hist": torch.bincount(bins, minlength=len(RATIO_EDGES) + 1).tolist(),
    }


@dataclass
class Update:
    """Applies a gradient: which part goes where, in which space, by which optimizer.

    arm: vanilla, erase or route; space: gradient or update; basis: V per module, None for a plain vanilla run.
    """

    arm: str
    space: str
    how: Intervention
    optimizer: AdamW
    quarantine: AdamW | None
    basis: dict[str, Tensor] | None

    def __call__(self, policy: Policy, gradient: Gradient, lr: float, clip: float | None) -> dict:
        """Update the policy in place and return the diagnostics of the step (null where there is no basis)."""
        total = clip_(gradient.total, clip) if clip else gradient.total
        in_gradient = self.arm != "vanilla" and self.space == "gradient"
        kept, removed = self._split(total) if in_gradient else (total, {})
        directions = self.optimizer.direction(kept)
        if self.arm != "vanilla" and self.space == "update":
            applied, removed_direction = self._split(directions)
        else:
            applied, removed_direction = directions, {}
        policy.theta = self.optimizer.apply(policy.theta, applied, lr)
        if self.arm == "route":
            if in_gradient:
                removed_direction = self.quarantine.direction(self._filled(removed, policy))
            policy.quarantine = self.quarantine.apply(
                policy.quarantine, self._filled(removed_direction, policy), lr
            )
        row = {"grad_norm": total_norm(total), "delta_norm": total_norm(policy.theta)}
        row["delta_hack_norm"] = total_norm(policy.quarantine) if policy.quarantine else None
        return row | self._diagnostics(gradient, total, kept, applied)

    def _split(self, vectors: Parameters) -> tuple[Parameters, Parameters]:
        kept, removed = dict(vectors), {}
        for name, V in self.basis.items():
            kept[name], removed[name] = project(vectors[name], V, self.how)
        return kept, removed

    def _filled(self, vectors: Parameters, policy: Policy) -> Parameters:
        """Modules without axes route nothing."""
        return {name: vectors.get(name, torch.zeros_like(theta)) for name, theta in policy.theta.items()}

    def _diagnostics(
        self, gradient: Gradient, total: Parameters, kept: Parameters, applied: Parameters
    ) -> dict:
        names = ("cin", "cin_s", "cin_t", "cin_null", "cout", "cout_update", "fired")
        if not self.basis:
            return dict.fromkeys(names)

        def alignment(vectors: Parameters) -> float | None:
            """Null where nothing points anywhere: a step without a teacher, or without any advantage."""
            known = any(bool(vector.any()) for vector in vectors.values())
            return mean_alignment(vectors, self.basis) if known else None

        values = (
            alignment(total),
            alignment(gradient.student),
            alignment(gradient.teacher),
            mean_null_alignment(self.basis),
            alignment(kept),
            alignment(applied),
            fired(total, self.basis),
        )
        return dict(zip(names, values, strict=True))
