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

    so that the student's and the teacher's share of the gradient are exact: no token serves both. Where an arm labels
    rows it stands once more for each label that they have; without labels every arm has the same batches.
    """

    batch: Batch
    labels: Tensor  # [tokens] of n labels: 0 ... n - 1 of the student's tokens, n ... 2n - 1 of the teacher's
    advantage: Tensor  # [completion tokens]
    teacher: Tensor  # [completion tokens] bool
    behaviour: Tensor  # [completion tokens] the pool's log-probs on teacher tokens, nan where none are stored

    @staticmethod
    def of(
        groups: Sequence[Group],
        advantage: Sequence[Sequence[float]],
        kinds: Sequence[Sequence[int]],
        n_labels: int,
    ) -> "Packed":
        prompts, prompt_labels, completions, unit, row_labels, A, behaviour = [], [], [], [], [], [], []
        for label in range(2 * n_labels):  # all of a label's tokens in a row: few stretches per label
            is_teacher = label >= n_labels
            for group, values, of_rows in zip(groups, advantage, kinds, strict=True):
                cut = slice(len(group.live), None) if is_teacher else slice(len(group.live))
                everyone = zip(group.rows[cut], values[cut], of_rows[cut], strict=True)
                rows = [(row, value) for row, value, kind in everyone if kind == label % n_labels]
                if not rows:
                    continue
                for row, value in rows:
                    unit.append(len(prompts))
                    row_labels.append(label)
                    completions.append(row.tokens)
                    A += [value] * len(row.tokens)
                    known = is_teacher and row.logprobs is not None
                    behaviour += row.logprobs if known else [float("nan")] * len(row.tokens)
                prompts.append(group.prompt)
                prompt_labels.append(label)
        batch = Batch(prompts=prompts, completions=completions, unit=unit)
        lengths = torch.tensor([len(tokens) for tokens in completions])
        return Packed(
            batch=batch,
            labels=batch.owner(prompt_labels, row_labels),
            advantage=torch.tensor(A),
            teacher=torch.repeat_interleave(torch.tensor(row_labels), lengths) >= n_labels,
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
