"""Train the small model's teacher: a LoRA on every Linear of the base, written as a PEFT adapter folder.

The update B A is added to the weights in the forward (a rank-16 merge costs nothing beside a batch), so that the
engine's packed forward serves here too; the folder is PEFT's own format and `peft` loads it.
"""

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from safetensors.torch import save_file
from torch import Tensor

from projected_grpo.model.batch import Batch
from projected_grpo.model.load import load
from projected_grpo.model.pretrain import encode, fit, linear_schedule, whole_folder

PREFIX = "base_model.model."


@dataclass(frozen=True)
class TeacherRecipe:
    """LoRA and its training; lr is the peak of a linear warm-up and a linear decay to `final` of it."""

    rank: int = 16
    alpha: int = 32
    batch: int = 12
    lr: float = 2e-3
    warmup: int = 10
    final: float = 0.03
    clip: float = 1.0


def train_teacher(
    texts: Sequence[tuple[str, str]],
    base: str | os.PathLike,
    out: str | os.PathLike,
    seed: int,
    recipe: TeacherRecipe = TeacherRecipe(),
    threads: int = 1,
) -> list[float]:
    """Train on `texts` (user, completion) once through and write a PEFT adapter folder to `out`.

    base: checkpoint folder. Returns the loss of every step (nats per completion token).
    """
    torch.set_num_threads(threads)
    model, tokenizer = load(base, "float32", "cpu")
    factors = start(model.weights, model.linears, recipe.rank, seed)
    leaves = [leaf for pair in factors.values() for leaf in pair]
    adam = torch.optim.AdamW(leaves, lr=recipe.lr, weight_decay=0.0)
    scale = recipe.alpha / recipe.rank

    def logprobs(batch: Batch) -> Tensor:
        merged = {n: model.weights[f"{n}.weight"] + scale * (B @ A) for n, (A, B) in factors.items()}
        return model.replace(merged).logprobs(batch)

    def update(factor: float) -> None:
        torch.nn.utils.clip_grad_norm_(leaves, recipe.clip)
        adam.param_groups[0]["lr"] = recipe.lr * factor
        adam.step()
        adam.zero_grad()

    examples = encode(texts, tokenizer)
    schedule = linear_schedule(len(examples) // recipe.batch, recipe.warmup, recipe.final)
    losses = fit(logprobs, examples, recipe.batch, update, schedule, "teacher")
    with whole_folder(out) as folder:
        tensors = {}
        for name, (A, B) in factors.items():
            tensors[f"{PREFIX}{name}.lora_A.weight"] = A.detach().contiguous()
            tensors[f"{PREFIX}{name}.lora_B.weight"] = B.detach().contiguous()
        save_file(tensors, folder / "adapter_model.safetensors", metadata={"format": "pt"})
        settings = {
            "peft_type": "LORA",
            "task_type": "CAUSAL_LM",
            "base_model_name_or_path": None,
            "r": recipe.rank,
            "lora_alpha": recipe.alpha,
            "lora_dropout": 0.0,
            "bias": "none",
            "target_modules": sorted({name.rsplit(".", 1)[1] for name in factors}),
        }
        (folder / "adapter_config.json").write_text(json.dumps(settings, indent=2) + "\n")
    return losses


def start(
    weights: dict[str, Tensor], names: Sequence[str], rank: int, seed: int
) -> dict[str, tuple[Tensor, Tensor]]:
    """LoRA's usual start: A uniform as of a Linear `[rank, d_in]`, B zero `[d_out, rank]`; leaves with gradients."""
    generator = torch.Generator().manual_seed(seed)
    factors = {}
    for name in names:
        d_out, d_in = weights[f"{name}.weight"].shape
        bound = 1 / math.sqrt(d_in)
        A = (torch.rand(rank, d_in, generator=generator) * 2 - 1) * bound
        factors[name] = (A.requires_grad_(), torch.zeros(d_out, rank).requires_grad_())
    return factors
