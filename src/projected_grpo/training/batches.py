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

    Student and teacher rows share no node, so that each one's share of the gradient is exact.
    """

    batch: Batch  # labels 0: student, 1: teacher
    advantage: Tensor  # [completion tokens]
    teacher: Tensor  # [completion tokens] bool
    behaviour: Tensor  # [completion tokens] the pool's log-probs on teacher tokens, nan where none are stored

    @staticmethod
    def of(groups: Sequence[Group], advantage: Sequence[Sequence[float]], device: torch.device) -> "Packed":
        rows, labels, A, behaviour = [], [], [], []
        for group, values in zip(groups, advantage, strict=True):
            for number, (row, value) in enumerate(zip(group.rows, values, strict=True)):
                taught = number >= len(group.live)
                rows.append((group.prompt, row.tokens))
                labels.append(int(taught))
                A += [value] * len(row.tokens)
                known = taught and row.logprobs is not None
                behaviour += row.logprobs if known else [float("nan")] * len(row.tokens)
        lengths = torch.tensor([len(tokens) for _, tokens in rows])
        return Packed(
            batch=Batch(rows, labels).to(device),
            advantage=torch.tensor(A, device=device),
            teacher=torch.repeat_interleave(torch.tensor(labels) == 1, lengths).to(device),
            behaviour=torch.tensor(behaviour, device=device),
        )


def micro_batches(groups: Sequence[Group], limit: int) -> list[list[int]]:
    """Split group indices into runs of at most `limit` tokens each, padding not counted (one group at the least)."""
    runs, current, size = [], [], 0
    for index, group in enumerate(groups):
        tokens = 2 * len(group.prompt) + sum(len(row.tokens) for row in group.rows)
        if current and size + tokens > limit:
            runs.append(current)
            current, size = [], 0
        current.append(index)
        size += tokens
    return [*runs, current] if current else runs
