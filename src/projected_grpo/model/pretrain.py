"""Train the small base model from scratch: a Qwen3 of 0.9 M parameters, loss on the completions alone.

Every example is seen once, in the order given; batches are packed, so no padding is computed. Muon on the
matrices of the layers, AdamW on the embedding and the norms, one schedule for both.
"""

import os
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from projected_grpo.errors import UserError
from projected_grpo.files import atomic_folder
from projected_grpo.model.architecture import Config, shapes
from projected_grpo.model.batch import Batch
from projected_grpo.model.decoder import Decoder
from projected_grpo.model.load import copy_tokenizer, save_weights, write_digests
from projected_grpo.model.muon import Muon
from projected_grpo.model.recipes import BASE, BaseRecipe
from projected_grpo.model.sealed import Saved
from projected_grpo.model.tokenizer import Tokenizer
from projected_grpo.progress import Progress

Examples = Sequence[tuple[list[int], list[int]]]  # (prompt ids, completion ids with the end token)


def encode(texts: Sequence[tuple[str, str]], tokenizer: Tokenizer) -> Examples:
    """Token ids of (user text, completion text): the templated prompt, the completion and the end token."""
    prompts = tokenizer.encode_batch([tokenizer.chat(user) for user, _ in texts])
    completions = tokenizer.encode_batch([text for _, text in texts])
    return [(prompt, [*ids, tokenizer.end]) for prompt, ids in zip(prompts, completions, strict=True)]


def train_base(
    texts: Sequence[tuple[str, str]],
    tokenizer: str | os.PathLike,
    out: str | os.PathLike,
    seed: int,
    recipe: BaseRecipe = BASE,
    threads: int = 1,
    saved: Saved | None = None,
) -> list[float]:
    """Train on `texts` (user, completion) once through and write a canonical folder to `out`.

    tokenizer: the folder of `small_tokenizer`; saved: where a stopped training goes on from. Returns the loss of every
    step (nats per completion token).
    """
    torch.set_num_threads(threads)
    kit = Tokenizer(tokenizer)
    config = Config(
        vocab_size=kit.size,
        hidden_size=recipe.hidden,
        intermediate_size=recipe.mlp,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        num_key_value_heads=recipe.kv_heads,
        head_dim=recipe.head_dim,
        rms_norm_eps=1e-6,
        rope_theta=recipe.rope_theta,
        tie_word_embeddings=True,
    )
    model = initial(config, seed, recipe.init_std)
    matrices = [model.weights[f"{name}.weight"] for name in model.linears]
    others = [W for name, W in model.weights.items() if name.removesuffix(".weight") not in model.linears]
    muon = Muon(matrices, recipe.muon_lr, recipe.muon_momentum, recipe.muon_decay, recipe.muon_steps)
    adam = torch.optim.AdamW(
        others, lr=recipe.adam_lr, betas=recipe.adam_betas, weight_decay=recipe.adam_decay, fused=True
    )

    def update(factor: float) -> None:
        torch.nn.utils.clip_grad_norm_([*matrices, *others], recipe.clip)
        adam.param_groups[0]["lr"] = recipe.adam_lr * factor
        adam.step()
        adam.zero_grad()
        muon.step(factor)

    examples = encode(texts, kit)
    batches = pack(examples, recipe.batch_tokens)
    schedule = linear_schedule(len(batches), recipe.warmup, recipe.final)
    if saved:
        saved.watch(model.weights, muon, adam)
    losses = fit(model.logprobs, batches, update, schedule, "base", saved)
    with atomic_folder(out) as folder:
        save_weights(model, folder)
        copy_tokenizer(tokenizer, folder)
        write_digests(folder)
    return losses


def initial(config: Config, seed: int, std: float) -> Decoder:
    """A model with normal weights and unit norms, every weight a leaf that requires a gradient."""
    generator = torch.Generator().manual_seed(seed)
    weights = {}
    for name, shape in shapes(config).items():
        W = torch.ones(shape) if len(shape) == 1 else torch.randn(shape, generator=generator) * std
        weights[name] = W.requires_grad_()
    return Decoder(config, weights)


def pack(examples: Examples, tokens: int) -> list[Examples]:
    """Cut `examples` into consecutive batches of at least `tokens` tokens each; what is left at the end is dropped.

    Raises UserError where they make no batch: nothing would be trained.
    """
    batches: list[Examples]
    current: list[tuple[list[int], list[int]]]
    batches, current, size = [], [], 0
    for example in examples:
        current.append(example)
        size += sum(map(len, example))
        if size >= tokens:
            batches.append(current)
            current, size = [], 0
    if not batches:
        raise UserError(f"{len(examples)} examples of {size} tokens make no batch of {tokens} (batch_tokens)")
    return batches


def fit(
    logprobs: Callable[[Batch], Tensor],
    batches: Sequence[Examples],
    update: Callable[[float], None],
    schedule: Callable[[int], float],
    name: str,
    saved: Saved | None = None,
) -> list[float]:
    """Descend the mean NLL of the completion tokens, one batch a step; return the loss of every step.

    logprobs: a packed batch -> log-probs of its completion tokens; `update(schedule(step))` makes the step; saved:
    watches all that a step changes.
    """
    losses = saved.resume() if saved else []
    progress = Progress(len(batches), name)
    progress.update(len(losses))
    for step in range(len(losses), len(batches)):
        loss = -logprobs(Batch(batches[step])).mean()
        loss.backward()
        update(schedule(step))
        losses.append(loss.item())
        progress.note(f"loss {sum(losses[-20:]) / len(losses[-20:]):.3f} (should fall)")
        progress.update()
        if saved:
            saved.keep(losses)
    return losses


def linear_schedule(steps: int, warmup: int, final: float) -> Callable[[int], float]:
    """Factor of the learning rate: linear from 0 to 1 over `warmup` steps, then linear to `final`."""
    rest = max(1, steps - warmup)
    return lambda step: min((step + 1) / max(1, warmup), 1.0 - (1.0 - final) * max(0, step - warmup) / rest)
