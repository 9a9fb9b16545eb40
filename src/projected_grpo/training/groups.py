"""Groups of one GRPO step: cached teacher rollouts and live student samples of the same prompt."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from projected_grpo.environment.problems import Problem
from projected_grpo.errors import UserError
from projected_grpo.files import read_jsonl
from projected_grpo.method.loss import advantages
from projected_grpo.model.load import Tokenizer
from projected_grpo.model.qwen3 import Batch
from projected_grpo.training.pool_files import pool_files


@dataclass(frozen=True)
class Row:
    """One completion of a group: tokens, its sampling log-probs (`[tokens]`), its verdict and frozen reward."""

    tokens: list[int]
    logprobs: list[float] | None
    reward: float
    verdict: dict


@dataclass(frozen=True)
class Group:
    """All rows of one prompt in one step; `live` were sampled now, `teacher` come from the pool."""

    problem: Problem
    prompt: list[int]
    live: list[Row]
    teacher: list[Row]

    @property
    def rows(self) -> list[Row]:
        return [*self.live, *self.teacher]


def read_pool(folder: Path, tokenizer: Tokenizer) -> dict[str, list[Row]]:
    """Read a pool folder (`step_NNN.jsonl.gz`, or any JSON-lines files of such rows) into problem id (as text) -> rows.

    Pools recorded elsewhere hold no `tokens`: their completions are tokenised here, and have no log-probs unless
    given. Raises UserError when the folder holds no step file, a file is not the one that the folder's `pool.json`
    names, or a row lacks a key.
    """
    paths = pool_files(Path(folder))
    pool: dict[str, list[Row]] = {}
    for path in paths:
        for number, row in enumerate(read_jsonl(path), 1):
            try:
                tokens = row.get("tokens") or [*tokenizer.encode(row["completion"]), tokenizer.end]
                made = Row(tokens, row.get("logprobs"), float(row["reward"]), row)
                pool.setdefault(str(row["problem_id"]), []).append(made)
            except KeyError as error:
                raise UserError(f"{path}:{number}: no key {error} in this pool row") from error
    return pool


def group_advantages(groups: Sequence[Group]) -> list[list[float]]:
    """Return A = R - mean(R) per group, in the order of its rows (live, then teacher)."""
    return [
        advantages(torch.tensor([[r.reward for r in g.rows]], dtype=torch.float64))[0].tolist()
        for g in groups
    ]


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
        for label in (
            0,
            1,
        ):  # all of the student's tokens before all of the teacher's: few stretches per label
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
