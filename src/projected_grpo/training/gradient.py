"""The gradient of the GRPO loss by source: the student's and the teacher's share of it (docs/method.md, "Loss")."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from projected_grpo.cells.hyper import Training
from projected_grpo.method.adapter import Parameters
from projected_grpo.method.gradients import Gradient, Tape
from projected_grpo.method.loss import grpo_loss, k3
from projected_grpo.method.policy import Policy
from projected_grpo.model.decoder import Decoder, Residual
from projected_grpo.training.batches import Packed, micro_batches
from projected_grpo.training.rollouts import Group


def policy_gradient(
    policy: Policy,
    model: Decoder,
    groups: Sequence[Group],
    advantages: Sequence[Sequence[float]],
    training: Training,
    off_policy: bool,
    labels: Sequence[Sequence[int]] | None = None,
    n_labels: int = 1,
    residual: Residual | None = None,
) -> Gradient:
    """Return the gradient of the GRPO loss at `model`, the merged policy.

    advantages: of each group's rows. One inner step: the old policy is the detached student, so every ratio is 1; with
    `off_policy` the teacher rows' old log-probs are the pool's (R5). Groups without any advantage are left out unless
    a KL term needs them. labels: of each group's rows, the gradient of each is wanted by itself; residual: what is
    done to the residual stream, the reference's as well.
    """
    kinds = labels or [[0] * len(group.rows) for group in groups]
    beta = training.beta
    live = [i for i, A in enumerate(advantages) if beta or any(A)]
    scale = training.group * training.max_new * len(groups)
    tape = Tape(policy.adapter, 2 * n_labels)
    loss, log_ratios, pushes, tokens = 0.0, [], [], 0
    for part in micro_batches([groups[i] for i in live], training.micro_batch_tokens):
        chosen = [live[i] for i in part]
        own: Iterator[Any] = ([values[i] for i in chosen] for values in (groups, advantages, kinds))
        packed = Packed.of(*own, n_labels, model.device)  # type: ignore[call-arg]
        tape.begin(packed.batch)
        logp = model.logprobs(packed.batch, linear=tape.linear, residual=residual)
        old = logp.detach()
        known = packed.teacher & ~packed.behaviour.isnan()
        if off_policy:
            old = torch.where(known, packed.behaviour, old)
        batch_loss = grpo_loss(logp, old, packed.advantage, scale)
        if beta:
            with torch.no_grad():
                reference = policy.base.logprobs(packed.batch, residual=residual)
            batch_loss = batch_loss + beta * k3(logp, reference).sum() / scale
        batch_loss.backward()
        loss += float(batch_loss.detach())
        log_ratios.append((logp.detach() - packed.behaviour)[known].cpu())
        pushes.append(packed.advantage[known].cpu())
        tokens += len(packed.batch.tokens)
    zeros = policy.adapter.zeros()
    grads = tape.grads or {name: zero.expand(2 * n_labels, -1) for name, zero in zeros.items()}

    def share(of: slice) -> Parameters:
        return {name: grads[name][of].sum(0) for name in policy.adapter.names}

    return Gradient(
        student=share(slice(n_labels)),
        teacher=share(slice(n_labels, None)),
        by_label=tuple(share(slice(kind, None, n_labels)) for kind in range(n_labels)) if labels else (),
        loss=loss,
        log_ratio=torch.cat(log_ratios) if log_ratios else torch.zeros(0),
        pushed=torch.cat(pushes) if pushes else torch.zeros(0),
        tokens=tokens,
    )
