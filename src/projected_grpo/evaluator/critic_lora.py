"""Training of the embedded critic: a LoRA on the small base model, stage after stage, as PEFT folders.

PEFT makes and saves the adapter; the forward is the engine's packed one on the merged weights, as for the
teacher.
"""

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import Tensor
from transformers import AutoModelForCausalLM

from projected_grpo.errors import UserError
from projected_grpo.evaluator.examples import Shown
from projected_grpo.files import atomic_folder
from projected_grpo.model.batch import Batch
from projected_grpo.model.load import find, load
from projected_grpo.model.pretrain import encode, fit, linear_schedule
from projected_grpo.model.teacher import TARGETS

WARMUP = 5  # steps
FINAL = 0.03  # share of the learning rate at the end


@dataclass(frozen=True)
class LoraRecipe:
    """LoRA and its training: `lr` and `steps` of the uncalibrated critic, `calibration_*` of each round."""

    rank: int
    alpha: int
    lr: float
    batch: int
    steps: int
    calibration_lr: float
    calibration_steps: int


def train_lora(
    base: str, begin: str | None, examples: Sequence[Shown], recipe: LoraRecipe, seed: int, out: Path
) -> float:
    """Train a LoRA on the checkpoint `base`, afresh or (calibration) from the PEFT folder `begin`, into `out`.

    AdamW on the mean NLL of the completion tokens. Returns the mean loss of the last quarter of the steps.
    Raises UserError where there is no example.
    """
    if not examples:
        raise UserError("no example to train the critic on; pool.problems is too small to set some aside")
    folder = find(base)
    model, tokenizer = load(folder)
    plain = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    if begin is None:
        lr, steps = recipe.lr, recipe.steps
        torch.manual_seed(seed)
        lora = {"r": recipe.rank, "lora_alpha": recipe.alpha, "target_modules": list(TARGETS)}
        adapter = get_peft_model(plain, LoraConfig(task_type="CAUSAL_LM", **lora))
    else:
        lr, steps = recipe.calibration_lr, recipe.calibration_steps
        adapter = PeftModel.from_pretrained(plain, begin, is_trainable=True)
    factors = {}
    for name in model.linears:
        layer = adapter.base_model.model.get_submodule(name)
        factors[name] = (layer.lora_A["default"].weight, layer.lora_B["default"].weight)
    leaves = [leaf for pair in factors.values() for leaf in pair]
    adam = torch.optim.AdamW(leaves, lr=lr, weight_decay=0.0)
    scale = recipe.alpha / recipe.rank

    def logprobs(batch: Batch) -> Tensor:
        merged = {n: model.weights[f"{n}.weight"] + scale * (B @ A) for n, (A, B) in factors.items()}
        return model.replace(merged).logprobs(batch)

    def update(factor: float) -> None:
        torch.nn.utils.clip_grad_norm_(leaves, 1.0)
        adam.param_groups[0]["lr"] = lr * factor
        adam.step()
        adam.zero_grad()

    order = _endless(encode(examples, tokenizer), seed)
    batches = [list(itertools.islice(order, recipe.batch)) for _ in range(steps)]
    losses = fit(logprobs, batches, update, linear_schedule(steps, WARMUP, FINAL), "critic")
    with atomic_folder(out) as temporary:
        adapter.save_pretrained(str(temporary))
    tail = losses[-max(1, steps // 4) :]
    return sum(tail) / len(tail)


def _endless(rows: Sequence, seed: int) -> Iterator:
    """The rows in random order, again and again; every one before any comes again."""
    chance, rows = random.Random(seed), list(rows)
    while True:
        chance.shuffle(rows)
        yield from rows
