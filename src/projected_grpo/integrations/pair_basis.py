"""A hack basis of a live transformers model: per-completion gradients by autograd, `method.basis` for the rest."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from projected_grpo.errors import UserError
from projected_grpo.integrations.adapted import Adapted, adapted
from projected_grpo.method.basis import Basis, Grads, Knobs, extract
from projected_grpo.method.pairs import PairSet
from projected_grpo.templated import OPENING, is_templated


def extract_basis(model: nn.Module, tokenizer: Any, pairs: PairSet, knobs: Knobs) -> Basis:
    """Return the basis of a pair set at the model's weights; its metadata say which model, adapter and rank."""
    found = adapted(model)
    hack, clean = pair_gradients(model, found, tokenizer, pairs)
    metadata = {"pairs": pairs.name, "pairs_digest": pairs.digest, "seed": str(knobs.seed)}
    metadata |= {"adapter": found.kind, "model_hash": found.model_hash()}
    if found.kind == "lora":
        metadata["factors_hash"] = found.factors_hash()
    return extract(hack, clean, knobs, metadata)


def pair_gradients(model: nn.Module, found: Adapted, tokenizer: Any, pairs: PairSet) -> tuple[Grads, Grads]:
    """Return the gradients of the mean token NLL of hack and of clean completions, `[n_pairs, size]`, on the CPU.

    One completion at a time, without dropout; gradients that the model holds stay as they are.
    """
    sides: list[Grads] = []
    training = model.training
    model.eval()
    try:
        for side in ("hack", "clean"):
            rows = [
                found.flat(_gradient(model, found, *tokens(tokenizer, pair.prompt, getattr(pair, side))))
                for pair in pairs.pairs
            ]
            sides.append({name: torch.stack([row[name].cpu() for row in rows]) for name in found.parameters})
    finally:
        model.train(training)
    return sides[0], sides[1]


def tokens(tokenizer: Any, prompt: str, completion: str) -> tuple[list[int], list[int]]:
    """Return the ids of a prompt as a turn that is to be answered, and of the answer with its end.

    prompt: what one user says or, where it opens with a token of the template, a conversation. Raises UserError where
    that token is of another model's template, or where the tokenizer has no template or no end token.
    """
    text = prompt
    if tokenizer.eos_token_id is None or not (is_templated(prompt) or tokenizer.chat_template):
        raise UserError("basis: the tokenizer has no end token or no chat template, allowed: a chat model's")
    if not is_templated(prompt):
        messages = [{"role": "user", "content": prompt}]
        options = {"tokenize": False, "add_generation_prompt": True, "enable_thinking": False}
        text = tokenizer.apply_chat_template(messages, **options)
    elif (opening := OPENING.match(prompt)[0]) not in tokenizer.get_vocab():  # type: ignore[index]
        raise UserError(f"basis: a prompt of the pairs is templated with {opening}, no token of this model")
    answer = tokenizer.encode(completion, add_special_tokens=False)
    return tokenizer.encode(text, add_special_tokens=False), [*answer, tokenizer.eos_token_id]


def _gradient(
    model: nn.Module, found: Adapted, prompt: list[int], completion: list[int]
) -> list[Tensor | None]:
    """Return the gradient of the completion's mean NLL with respect to each trained parameter."""
    device = found.trained[0].device
    ids = torch.tensor([[*prompt, *completion]], device=device)
    with torch.enable_grad(), torch.autocast(device.type, enabled=False):
        logits = model(input_ids=ids, use_cache=False).logits[0, len(prompt) - 1 : -1].float()
        loss = F.cross_entropy(logits, ids[0, len(prompt) :])
        if not torch.isfinite(loss):
            raise UserError(f"basis: the NLL of a completion of the pairs is {loss.item()}")
        if not found.sharded:
            return list(torch.autograd.grad(loss, found.trained, allow_unused=True))
        # What FSDP2 computes with is not the parameter itself: only its own backward reaches that.
        held = [p.grad for p in found.trained]
        for p in found.trained:
            p.grad = None
        loss.backward()
        gradients = [p.grad for p in found.trained]
        for p, grad in zip(found.trained, held, strict=True):
            p.grad = grad
        return gradients
