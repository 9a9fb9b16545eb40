"""From a pair set to a hack basis on given weights: tokenise, per-sample gradients, extraction."""

from pathlib import Path

import torch

from projected_grpo.digests import check_planned
from projected_grpo.method.basis import Basis, Knobs, content_hash, extract
from projected_grpo.method.gradients import Sample, sample_gradients
from projected_grpo.method.pairs import PairSet, load_pairs
from projected_grpo.method.policy import Policy


def select_pairs(path: Path, knobs: dict) -> PairSet:
    """Return the pairs that a basis is extracted from. Raises UserError where they are not those of the plan."""
    pairs, digest = load_pairs(path).used(knobs)
    check_planned(path, digest)
    return pairs


def pair_gradients(
    policy: Policy, pairs: PairSet, loss: str = "nll", batch_tokens: int = 8192
) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Return the gradients of hack and of clean completions, `[n_pairs, size]` per module, at the policy's weights.

    loss: `nll` is the mean NLL of a completion's tokens; `grpo` its
    summed NLL over the longest completion's length, the loss of a contrastive (+1, -1) group (docs/method.md, "Basis").
    """
    tokenizer, model = policy.tokenizer, policy.merged()
    samples = []
    for side in ("hack", "clean"):
        for pair in pairs.pairs:
            completion = [*tokenizer.encode(getattr(pair, side)), tokenizer.end]
            samples.append(Sample(tokenizer.encode_chat(pair.prompt), completion))
    norm = max(len(sample.completion) for sample in samples) if loss == "grpo" else None
    grads, _ = sample_gradients(model, policy.adapter, samples, norm, batch_tokens)
    n = len(pairs)
    return {k: g[:n] for k, g in grads.items()}, {k: g[n:] for k, g in grads.items()}


def extract_basis(policy: Policy, pairs: PairSet, knobs: dict, seed: int, draw: int = 0) -> Basis:
    """Extract a basis at the policy's weights; knobs: as under `basis` in the config; draw: of a random one."""
    hack, clean = pair_gradients(policy, pairs, knobs["loss"])
    chosen = Knobs(
        top_k=knobs["top_k"],
        tau=knobs["tau"],
        method=knobs["method"],
        solve_orth_m=knobs["solve_orth_m"],
        control=knobs["control"],
        seed=seed,
        draw=draw,
    )
    metadata = {"pairs": pairs.name, "seed": str(seed)}
    if knobs["control"] != "random":  # whose axes depend on shapes and seed alone
        metadata["pairs_digest"] = pairs.digest
    return extract(hack, clean, chosen, metadata)


def model_hash(policy: Policy) -> str:
    """Return a hash of the adapted weights, to name the model in a basis file."""
    return content_hash({name: policy.base.weights[f"{name}.weight"] for name in policy.adapter.names})
