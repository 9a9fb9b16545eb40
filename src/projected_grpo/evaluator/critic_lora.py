"""Training of the embedded critic: a LoRA on the small base model, stage after stage, as PEFT folders."""

import itertools
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from projected_grpo.cells.self_taught import CriticTraining
from projected_grpo.errors import UserError
from projected_grpo.evaluator.examples import Shown
from projected_grpo.model.pretrain import encode, linear_schedule
from projected_grpo.model.teacher import TrainedLora

WARMUP = 5  # steps
FINAL = 0.03  # share of the learning rate at the end


def train_lora(
    base: str, begin: str | None, examples: Sequence[Shown], recipe: CriticTraining, seed: int, out: Path
) -> float:
    """Train a LoRA on the checkpoint `base`, afresh or (calibration) from the PEFT folder `begin`, into `out`.

    AdamW on the mean NLL of the completion tokens. Returns the mean loss of the last quarter of the steps.
    Raises UserError where there is no example.
    """
    if not examples:
        raise UserError("no example to train the critic on; pool.problems is too small to set some aside")
    afresh = begin is None
    lr = recipe.lr if afresh else recipe.calibration_lr
    steps = recipe.steps if afresh else recipe.calibration_steps
    torch.manual_seed(seed)
    lora = TrainedLora(base, recipe.rank, recipe.alpha, begin)
    order = _endless(encode(examples, lora.tokenizer), seed)
    batches = [list(itertools.islice(order, recipe.batch)) for _ in range(steps)]
    adam = torch.optim.AdamW(lora.leaves, lr=lr, weight_decay=0.0)
    losses = lora.train(batches, adam, linear_schedule(steps, WARMUP, FINAL), "critic", out, clip=1.0)
    tail = losses[-max(1, steps // 4) :]
    return sum(tail) / len(tail)


def _endless(rows: Sequence, seed: int) -> Iterator:
    """The rows in random order, again and again; every one before any comes again."""
    chance, rows = random.Random(seed), list(rows)
    while True:
        chance.shuffle(rows)
        yield from rows
