"""Train a LoRA on a canonical folder; write it as a PEFT adapter folder, and the teacher as the model that it makes.

PEFT makes the adapter (its config, its initial weights, its file format); the forward is ours, on the merged
weight W + scale B A, which gives A and B their gradients at the cost of the small model's own pass.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from projected_grpo.files import atomic_folder, read_json, write_json
from projected_grpo.model.batch import Batch
from projected_grpo.model.decoder import Decoder
from projected_grpo.model.load import copy_tokenizer, load, save_weights, write_digests
from projected_grpo.model.pretrain import Examples, encode, fit, linear_schedule, pack
from projected_grpo.model.recipes import TEACHER, TeacherRecipe
from projected_grpo.model.sealed import Saved

LORA = "lora"  # folder of the adapter in that of the teacher
TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


class TrainedLora:
    """A LoRA on the canonical folder `base` in training: new (B = 0), or the PEFT folder `begin` trained further.

    Raises UserError where `base` is no canonical folder.
    """

    def __init__(self, base: str | os.PathLike, rank: int, alpha: int, begin: str | None = None):
        from peft import LoraConfig, PeftModel, get_peft_model  # seconds to import
        from transformers import AutoModelForCausalLM

        self.model, self.tokenizer = load(base)
        plain = AutoModelForCausalLM.from_pretrained(str(base), dtype=torch.float32)
        if begin is None:
            lora: dict[str, Any] = {"r": rank, "lora_alpha": alpha, "target_modules": list(TARGETS)}
            self.adapter: Any = get_peft_model(plain, LoraConfig(task_type="CAUSAL_LM", **lora))
        else:
            self.adapter = PeftModel.from_pretrained(plain, begin, is_trainable=True)
        layers = {name: self.adapter.base_model.model.get_submodule(name) for name in self.model.linears}
        self.sides = {n: (l.lora_A["default"].weight, l.lora_B["default"].weight) for n, l in layers.items()}
        self.leaves = [W for pair in self.sides.values() for W in pair]
        self.scale = alpha / rank

    def merged(self) -> Decoder:
        """The model with the adapter as it is now in its weights."""
        W = self.model.weights
        merged = {name: W[f"{name}.weight"] + self.scale * (B @ A) for name, (A, B) in self.sides.items()}
        return self.model.replace(merged)

    def logprobs(self, batch: Batch) -> torch.Tensor:
        """Log-probs of the batch's completion tokens under the merged weights."""
        return self.merged().logprobs(batch)

    def train(
        self,
        batches: Sequence[Examples],
        adam: torch.optim.Optimizer,
        schedule: Callable[[int], float],
        name: str,
        out: str | os.PathLike,
        clip: float | None = None,
        saved: Saved | None = None,
    ) -> list[float]:
        """Make one step a batch, then write the adapter to the folder `out`; return the losses.

        clip: of the norm; saved: where a stopped training goes on from.
        """
        [rate] = [group["lr"] for group in adam.param_groups]

        def update(factor: float) -> None:
            if clip is not None:
                torch.nn.utils.clip_grad_norm_(self.leaves, clip)
            adam.param_groups[0]["lr"] = rate * factor
            adam.step()
            adam.zero_grad()

        if saved:
            saved.watch({str(number): W for number, W in enumerate(self.leaves)}, adam)
        losses = fit(self.logprobs, batches, update, schedule, name, saved)
        with atomic_folder(out) as temporary:
            self.adapter.save_pretrained(str(temporary))
            config = temporary / "adapter_config.json"
            said = read_json(config)
            # PEFT keeps them as a set, whose order differs from process to process.
            write_json(config, said | {"target_modules": sorted(said["target_modules"])})
        return losses


def train_teacher(
    texts: Sequence[tuple[str, str]],
    base: str | os.PathLike,
    out: str | os.PathLike,
    seed: int,
    recipe: TeacherRecipe = TEACHER,
    threads: int = 1,
    saved: Saved | None = None,
) -> list[float]:
    """Train on `texts` (user, completion) once through and write the teacher's canonical folder; return the losses.

    What was trained stands in it as a PEFT adapter folder `lora`. saved: where a stopped training goes on from.
    Raises UserError where `base` is no canonical folder.
    """
    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    lora = TrainedLora(base, recipe.rank, recipe.alpha)
    batches = pack(encode(texts, lora.tokenizer), recipe.batch_tokens)
    schedule = linear_schedule(len(batches), recipe.warmup, recipe.final)
    adam = torch.optim.AdamW(lora.leaves, lr=recipe.lr)
    losses = lora.train(batches, adam, schedule, "teacher", Path(out) / LORA, saved=saved)
    save_weights(lora.merged(), out)
    copy_tokenizer(base, out)
    write_digests(out)
    return losses
