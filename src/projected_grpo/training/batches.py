"""Groups as batches of the model, and which rows belong to whom."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from projected_grpo.model.batch import Batch
from projected_grpo.training.rollouts import Group


@dataclass(frozen=True)
class Packed:
    """Groups as one batch, with what the loss knows of each completion token, row after row.

    Student and teacher rows share no node, so that each one's share of the gradient is exact; nor do rows that an arm
    labels differently. Without labels every arm has the same batches.
    """

    batch: Batch  # labels, of n that rows have: 0 ... n - 1 of student rows, n ... 2n - 1 of the teacher's
    advantage: Tensor  # [completion tokens]
    teacher: Tensor  # [completion tokens] bool
    behaviour: Tensor  # [completion tokens] the pool's log-probs on teacher tokens, nan where none are stored

    @staticmethod
    def of(
        groups: Sequence[Group],
        advantage: Sequence[Sequence[float]],
        kinds: Sequence[Sequence[int]],
        n_labels: int,
        device: torch.device,
    ) -> "Packed":
        behaviour: list[float]
        rows, labels, teacher, A, behaviour = [], [], [], [], []
        for group, values, own in zip(groups, advantage, kinds, strict=True):
            for number, (row, value, kind) in enumerate(zip(group.rows, values, own, strict=True)):
                taught = number >= len(group.live)
                rows.append((group.prompt, row.tokens))
                labels.append(n_labels * taught + kind)
                teacher += [taught] * len(row.tokens)
                A += [value] * len(row.tokens)
                known = taught and row.logprobs is not None
                behaviour += row.logprobs if known else [float("nan")] * len(row.tokens)  # type: ignore[arg-type]
        return Packed(
            batch=Batch(rows, labels).to(device),
            advantage=torch.tensor(A, device=device),
            teacher=torch.tensor(teacher, dtype=torch.bool, device=device),
            behaviour=torch.tensor(behaviour, device=device),
        )


def micro_batches(groups: Sequence[Group], limit: int) -> list[list[int]]:
    """Split group indices into runs of at most `limit` tokens each, padding not counted (one group at the least)."""
    current: list[int]
    runs, current, size = [], [], 0
    for index, group in enumerate(groups):
        tokens = 2 * len(group.prompt) + sum(len(row.tokens) for row in group.rows)
        if current and size + tokens > limit:
            runs.append(current)
            current, size = [], 0
        current.append(index)
        size += tokens
    return [*runs, current] if current else runs
