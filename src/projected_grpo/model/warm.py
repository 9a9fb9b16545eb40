"""Warm start: teach a given model a problem family's format, all weights, before anything else is done with it.

It is trained on honest solutions alone, some of them wrong: what it knows of honesty and of cheating is what
pretraining gave it.
"""

import os
from collections.abc import Sequence

import torch

from projected_grpo.files import atomic_folder
from projected_grpo.model.load import copy_tokenizer, load, save_weights, write_digests
from projected_grpo.model.pretrain import encode, fit, linear_schedule, pack
from projected_grpo.model.recipes import WarmStart
from projected_grpo.model.sealed import Saved


def warm_start(
    texts: Sequence[tuple[str, str]],
    given: str | os.PathLike,
    out: str | os.PathLike,
    recipe: WarmStart,
    threads: int = 1,
    saved: Saved | None = None,
) -> list[float]:
    """Train the model in the canonical folder `given` on `texts` (user, completion) once through, into `out`.

    saved: where a stopped training goes on from. Returns the loss of every step (nats per completion token).
    """
    torch.set_num_threads(threads)
    model, tokenizer = load(given)
    weights = {name: W.requires_grad_() for name, W in model.weights.items()}
    adam = torch.optim.AdamW(weights.values(), lr=recipe.lr, betas=recipe.betas, weight_decay=0.0, fused=True)

    def update(factor: float) -> None:
        torch.nn.utils.clip_grad_norm_(weights.values(), recipe.clip)
        adam.param_groups[0]["lr"] = recipe.lr * factor
        adam.step()
        adam.zero_grad()

    batches = pack(encode(texts, tokenizer), recipe.batch_tokens)
    schedule = linear_schedule(len(batches), recipe.warmup, recipe.final)
    if saved:
        saved.watch(weights, adam)
    losses = fit(model.logprobs, batches, update, schedule, "warm", saved)
    with atomic_folder(out) as folder:
        save_weights(model, folder)
        copy_tokenizer(given, folder)
        write_digests(folder)
    return losses
