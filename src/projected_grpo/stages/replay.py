"""The distillation probe: replay the teacher's rollouts as NLL training of the student (docs/probe.md).

One problem a step. Every step measures each sample's gradient by itself (does the basis see this rollout?),
then takes one optimizer step on their mean, plain (`vanilla`) or with the hack-ward part taken out first
(`projected`). No reward and no verdict enters: `hacked` and `gt_pass` only travel along to the rows.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from projected_grpo.arms import Given
from projected_grpo.arms.erase import Erase  # by import, not by name: their code is this stage's
from projected_grpo.arms.measure import Measure
from projected_grpo.environment.levers import KIND, LEVERS
from projected_grpo.errors import UserError
from projected_grpo.method.adapter import Parameters
from projected_grpo.method.basis import Basis, sample_cosine
from projected_grpo.method.gradients import Gradient, Sample, sample_gradients
from projected_grpo.method.optimizer import AdamW, learning_rate
from projected_grpo.method.policy import Policy
from projected_grpo.method.projection import Intervention, project
from projected_grpo.model.tokenizer import Tokenizer
from projected_grpo.training.graded import Graded
from projected_grpo.training.step import update
from projected_grpo.training.teacher_pool import read_pool

ARMS = {"vanilla": Measure, "projected": Erase}  # replay -> what its update does with the basis
COPIED = ("problem_id", "sample_id", "hacked", "gt_pass", "fmt_ok", "exploited", "reward")


@dataclass(frozen=True)
class Training:
    """The optimizer of a replay; the fields are those of a GRPO run."""

    lr: float
    betas: tuple[float, float]
    weight_decay: float
    warmup: float
    clip: float | None


def mode_of(row: dict) -> str | None:
    """Return a pool row's loophole: that of its `mode`, else the one whose hint its prompt holds."""
    hinted = (lever.name for lever in LEVERS.values() if lever.hint in row["prompt"])
    return KIND.get(row.get("mode") or next(hinted, None))


def probe_problems(pool: Path, tokenizer: Tokenizer, mode: str, limit: int) -> list[list[Graded]]:
    """Return the rows of the first `limit` problems of a pool with the hint of `mode`, in the pool's order.

    Raises UserError when the pool has no such problem.
    """
    problems = [rows for rows in read_pool(pool, tokenizer).values() if mode_of(rows[0].row) == mode]
    if not problems:
        raise UserError(
            f"{pool}: no problem with the hint of {mode} in this teacher pool (config key `probe.mode`)"
        )
    return problems[:limit]


def check_fits(basis: Basis, policy: Policy) -> None:
    """Raise UserError unless the basis was extracted in this adapter's space."""
    for name, V in basis.V.items():
        if policy.adapter.sizes.get(name) != V.shape[1]:
            raise UserError(
                f"basis: {name} has {V.shape[1]} coordinates, the adapter {policy.adapter.sizes.get(name)}; "
                "it was extracted for another model or adapter"
            )


def finite(value: float | torch.Tensor) -> float | None:
    """Return the value, or None where it is not finite (a zero gradient has no cosine)."""
    return float(value) if math.isfinite(value) else None


def sample_rows(
    policy: Policy, rows: Sequence[Graded], basis: Basis, projects: bool
) -> tuple[list[dict], Parameters]:
    """Measure one problem's samples at the policy's weights; return their columns and the mean gradient.

    `*_start` columns are taken at the untrained student, where rows of different steps can be compared. The
    policy is merged after that student: LoRA takes its gradient at what was merged last.
    """
    prompt = policy.tokenizer.encode_chat(rows[0].row["prompt"])
    samples = [Sample(prompt, row.tokens) for row in rows]
    untrained = policy.base.replace(policy.adapter.merge(policy.adapter.zeros()))
    start, nll_start = sample_gradients(untrained, policy.adapter, samples)
    cos_start, _ = sample_cosine(start, basis)
    grads, nll = sample_gradients(policy.merged(), policy.adapter, samples)
    cosine, normalised = sample_cosine(grads, basis)
    cos_out, _ = sample_cosine(projected(grads, basis), basis) if projects else (cosine, None)
    norm = sum(g.double().square().sum(1) for g in grads.values()).sqrt()  # type: ignore[union-attr]
    columns = []
    for i, row in enumerate(rows):
        stored = row.logprobs
        columns.append(
            {key: row.row.get(key) for key in COPIED}
            | {
                "mode": mode_of(row.row),
                "tokens": len(row.tokens),
                "cos_S_contrib": finite(cosine[i]),
                "cos_S_normalised": finite(normalised[i]),
                "cos_S_out": finite(cos_out[i]),
                "cos_S_start": finite(cos_start[i]),
                "grad_norm": finite(norm[i]),
                "nll": finite(nll[i]),
                "nll_start": finite(nll_start[i]),
                "nll_teacher": finite(-sum(stored) / len(stored)) if stored else None,
            }
        )
    return columns, {name: g.mean(0) for name, g in grads.items()}


def projected(grads: dict[str, torch.Tensor], basis: Basis) -> dict[str, torch.Tensor]:
    """Return per-sample gradients `[n, size]` with each sample's own hack-ward part taken out (one_sided)."""
    how = Intervention()
    return {name: torch.stack([project(g, V, how)[0] for g in grads[name]]) for name, V in basis.V.items()}


def replay(
    policy: Policy, problems: Sequence[Sequence[Graded]], basis: Basis, arm: str, training: Training
) -> Iterator[list[dict]]:
    """Yield one step's rows after the other: its samples, then one row of kind `step`.

    basis: as it is used (k axes, noise floor applied); arm: `vanilla` or `projected`; the policy is trained
    in place. `mean_cos_in` and `mean_cos_out` are cin and cout (docs/method.md) of the step's mean gradient before and
    after the arm's intervention (equal in a vanilla replay), `cout_update` that of what AdamW applies.
    """
    check_fits(basis, policy)
    fresh = partial(AdamW, betas=training.betas, weight_decay=training.weight_decay)
    optimizer, defence = fresh(policy.theta), ARMS[arm]
    acting = defence(defence.Knobs(basis="probe"), Given(0, policy, fresh, basis))
    for step, rows in enumerate(problems):
        columns, mean = sample_rows(policy, rows, basis, arm == "projected")
        loss = sum(row["nll"] for row in columns) / len(columns)
        tokens = sum(row["tokens"] for row in columns)
        none = torch.zeros(0)
        gradient = Gradient(policy.adapter.zeros(), mean, loss, none, none, tokens).clipped(training.clip)
        lr = learning_rate(step + 1, len(problems), training.lr, training.warmup)
        seen = update(policy, acting, optimizer, gradient, lr)
        cosines = [row["cos_S_contrib"] for row in columns if row["cos_S_contrib"] is not None]
        yield [{"kind": "sample", "step": step, **row} for row in columns] + [
            {
                "kind": "step",
                "step": step,
                "problem_id": columns[0]["problem_id"],
                "arm": arm,
                "mean_cos_in": seen["cin"],
                "mean_cos_out": seen["cout"],
                "cos_null": seen["cin_null"],
                "cout_update": seen["cout_update"],
                "fired": seen["fired"],
                "mean_cos_S": sum(cosines) / len(cosines) if cosines else None,
                "loss": loss,
                "lr": lr,
                "grad_norm": seen["grad_norm"],
                "delta_norm": seen["delta_norm"],
                "modules": len(basis.V),
            }
        ]
