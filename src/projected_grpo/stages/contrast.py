"""Bases compared: of two losses (R7), a frozen V with itself later (R6), any with the exploits' own (Q19, Q20)."""

import json

import torch
from torch import Tensor

from projected_grpo.method.adapter import Parameters
from projected_grpo.method.basis import Basis, Grads, Knobs, content_hash, extract, overlap
from projected_grpo.method.extraction import extract_basis, pair_gradients
from projected_grpo.method.optimizer import total_norm
from projected_grpo.method.pairs import PairSet
from projected_grpo.method.policy import Policy


def compare_losses(policy: Policy, pairs: PairSet, knobs: dict, use: dict, nll: Basis, grpo: Basis) -> dict:
    """Compare the NLL basis of a pair set with its contrastive GRPO basis, both as they are used.

    The contrastive loss sums where the NLL takes means, so its gradients are the NLL's times length / longest. To
    show that nothing else differs, the NLL gradients are reweighted by hand and a basis is extracted from those:
    `overlap_reweighted` is 1 when length weighting explains all. `overlap_pair_weights` weighs both sides of a pair
    by their mean length alone: what then remains comes from length differences within pairs.
    """
    hack, clean = pair_gradients(policy, pairs, "nll")
    encode = policy.tokenizer.encode
    n_hack, n_clean = (
        torch.tensor([len(encode(getattr(pair, side))) + 1.0 for pair in pairs.pairs])  # with its end
        for side in ("hack", "clean")
    )
    longest = max(n_hack.max(), n_clean.max())
    names = ("top_k", "tau", "method", "solve_orth_m", "control")
    chosen = Knobs(**{name: knobs[name] for name in names})

    def weighed(grads: Grads, of_pair: Tensor) -> Grads:
        return {name: g * of_pair.to(g)[:, None] for name, g in grads.items()}

    def rebuilt(of_hack: Tensor, of_clean: Tensor) -> Basis:
        return extract(weighed(hack, of_hack), weighed(clean, of_clean), chosen).used(**use)

    mean = (n_hack + n_clean) / 2 / longest
    by_length, by_pair = rebuilt(n_hack / longest, n_clean / longest), rebuilt(mean, mean)
    return {
        "overlap": overlap(nll.V, grpo.V),
        "overlap_reweighted": overlap(by_length.V, grpo.V),
        "overlap_pair_weights": overlap(by_pair.V, grpo.V),
        "hash_nll": content_hash(nll.V),
        "hash_grpo": content_hash(grpo.V),
    }


def cosine(a: Parameters, b: Parameters) -> float:
    """Return the cosine of two vectors over all modules."""
    inner = sum(float(a[name].double() @ b[name].double()) for name in a)
    return inner / (total_norm(a) * total_norm(b))


def overlaps(
    policy: Policy, reference: str, bases: dict[str, Basis], pairs: dict[str, PairSet], uses: list[dict]
) -> list[dict]:
    """Return how bases lie to the basis `reference`, as each is used.

    bases, pairs: by name; uses: `basis`, its `use`, in the order of the result. `overlap` is of the spans at the same
    use; `cosine` that of the mean differences over all modules.
    """
    means, found = {}, []
    for name, own in pairs.items():
        hack, clean = pair_gradients(policy, own, json.loads(bases[name].metadata["knobs"])["loss"])
        means[name] = {module: (hack[module] - clean[module]).mean(0) for module in hack}
    for one in uses:
        mine, other = (bases[name].used(**one["use"]) for name in (one["basis"], reference))
        found.append(
            {
                "basis": one["basis"],
                "k": one["use"]["k"],
                "overlap": overlap(mine.V, other.V),
                "cosine": cosine(means[one["basis"]], means[reference]),
            }
        )
    return found


def drift(policy: Policy, pairs: PairSet, knobs: dict, use: dict, frozen: Basis, seed: int) -> float:
    """Return how much of a frozen basis one extracted at the policy's weights still shares."""
    return overlap(frozen.V, extract_basis(policy, pairs, knobs, seed).used(**use).V)
