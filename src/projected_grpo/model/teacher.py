"""Train a LoRA on a Qwen3 checkpoint and save it as a PEFT adapter folder.

PEFT makes the adapter (its config, its initial weights, its file format); the forward is ours, on the merged
weight W + scale B A, which gives A and B their gradients at the cost of the small model's own pass.
"""

import os
from collections.abc import Sequence

import torch

from projected_grpo.files import atomic_folder
from projected_grpo.model.batch import Batch
from projected_grpo.model.load import find, load
from projected_grpo.model.pretrain import encode, fit, linear_schedule, pack
from projected_grpo.model.recipes import TEACHER, TeacherRecipe

TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def train_teacher(
    texts: Sequence[tuple[str, str]],
    base: str | os.PathLike,
    out: str | os.PathLike,
    seed: int,
    recipe: TeacherRecipe = TEACHER,
    threads: int = 1,
) -> list[float]:
    """Train on `texts` (user, completion) once through; write a PEFT adapter folder to `out`; return the losses.

    Raises UserError where `base` is no Qwen3 checkpoint.
    """
    from peft import LoraConfig, get_peft_model  # seconds to import
    from transformers import Qwen3ForCausalLM

    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    folder = find(base)
    model, tokenizer = load(folder)
    config = LoraConfig(
        r=recipe.rank, lora_alpha=recipe.alpha, target_modules=list(TARGETS), task_type="CAUSAL_LM"
    )
    adapter = get_peft_model(Qwen3ForCausalLM.from_pretrained(str(folder), dtype=torch.float32), config)
    sides = {
        name: (layer.lora_A["default"].weight, layer.lora_B["default"].weight)
        for name in model.linears
        for layer in [adapter.base_model.model.get_submodule(name)]
    }
    scale = recipe.alpha / recipe.rank

    def logprobs(batch: Batch) -> torch.Tensor:
        merged = {name: model.weights[f"{name}.weight"] + scale * (B @ A) for name, (A, B) in sides.items()}
        return model.replace(merged).logprobs(batch)

    adam = torch.optim.AdamW([W for pair in sides.values() for W in pair], lr=recipe.lr)

    def update(factor: float) -> None:
        adam.param_groups[0]["lr"] = recipe.lr * factor
        adam.step()
        adam.zero_grad()

    batches = pack(encode(texts, tokenizer), recipe.batch_tokens)
    schedule = linear_schedule(len(batches), recipe.warmup, recipe.final)
    losses = fit(logprobs, batches, update, schedule, "teacher")
    with atomic_folder(out) as temporary:
        adapter.save_pretrained(str(temporary))
    return losses
