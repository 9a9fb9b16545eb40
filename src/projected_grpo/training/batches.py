"""Groups as packed batches of the model, and which tokens belong to whom."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from projected_grpo.model.qwen3 import Batch
from projected_grpo.training.rollouts import Group


@dataclass(frozen=True)
class Packed:
    """Groups as one packed batch. A prompt stands once for the group's live rows and once for its teacher rows,

    so that the student's and the teacher's share of the gradient are exact: no token serves both.
    """

    batch: Batch
    labels: Tensor  # [tokens] 0: student, 1: teacher
    advantage: Tensor  # [completion tokens]
    teacher: Tensor  # [completion tokens] bool
    behaviour: Tensor  # [completion tokens] the pool's log-probs on teacher tokens, nan where none are stored

    @staticmethod
    def of(groups: Sequence[Group], advantage: Sequence[Sequence[float]]) -> "Packed":
        prompts, prompt_labels, completions, unit, row_labels, A, behaviour = [], [], [], [], [], [], []
        for label in (0, 1):  # all of the student's tokens before the teacher's: few stretches per label
            for group, values in zip(groups, advantage, strict=True):
                rows = group.teacher if label else group.live
                if not rows:
                    continue
                own = values[len(group.live) :] if label else values[: len(group.live)]
                for row, value in zip(rows, own, strict=True):
                    unit.append(len(prompts))
                    row_labels.append(label)
                    completions.append(row.tokens)
                    A += [value] * len(row.tokens)
                    known = label and row.logprobs is not None
                    behaviour += row.logprobs if known else [float("nan")] * len(row.tokens)
                prompts.append(group.prompt)
                prompt_labels.append(label)
        batch = Batch(prompts=prompts, completions=completions, unit=unit)
        lengths = torch.tensor([len(tokens) for tokens in completions])
        return Packed(
            batch=batch,
            labels=batch.owner(prompt_labels, row_labels),
            advantage=torch.tensor(A),
            teacher=torch.repeat_interleave(torch.tensor(row_labels), lengths) == 1,
            behaviour=torch.tensor(behaviour),
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
