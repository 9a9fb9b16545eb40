"""How well directions tell hacks from other rollouts of a run, as it trains (docs/detector.md, question Q18).

Rollouts are scored at the weights that sampled them, rebuilt from the stored delta_S. Two scores: `concept`, the mean
residual stream of a completion along a direction, and `alignment`, that of a rollout's gradient with one. Each has
the directions of pair sets, random ones, an oracle's, and a ceiling: what the run's own last rollouts on half of the
problems say of the other half.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from projected_grpo.method.adapter import Parameters
from projected_grpo.method.basis import Basis
from projected_grpo.method.concept import SIDES, batches_of, middle, row_means
from projected_grpo.method.extraction import pair_gradients
from projected_grpo.method.gradients import Sample, sample_gradients
from projected_grpo.method.pairs import PairSet
from projected_grpo.method.policy import Policy
from projected_grpo.model.batch import Batch
from projected_grpo.model.decoder import Decoder
from projected_grpo.stages.ranking import flagged_rates, matched_pairs, rank, unmatched_auroc, windows
from projected_grpo.stages.replay import finite

CONCEPT, CONCEPT_BASE, ALIGNMENT = "concept", "concept_base", "alignment"
RANDOM, ORACLE, CEILING = "random", "oracle", "ceiling"
FOLDS = 5  # of problems: the oracle scores rollouts of one by pairs of the others
BATCH_TOKENS = 8192
COLUMNS = ("step", "problem_id", "tokens", "hacked", "completion")  # of `rollouts.parquet`
RATES = ("precision", "recall", "flagged")


@dataclass(frozen=True)
class Fixed:
    """Directions that are settled before the first step.

    names: `[d]`; along: `[d, size]`; thresholds: `[d]`, the middle between the mean scores of the two sides of the
    pair set that is asked about, at the base.
    """

    names: tuple[str, ...]
    along: Tensor
    thresholds: Tensor

    def margins(self, features: Tensor) -> Tensor:
        """Return score - threshold `[n, d]` of rows `[n, size]`, float64."""
        return features.double() @ self.along.T - self.thresholds


def settle(names: Sequence[str], along: Tensor, random: Tensor, hack: Tensor, clean: Tensor) -> Fixed:
    """Add random directions to those of pair sets, turned so that the pairs' hacks lie above their clean sides.

    along: `[sets, size]`; random: `[n, size]`; hack, clean: features of the pairs `[pairs, size]`.
    """
    hack, clean, random = hack.double(), clean.double(), random.double()
    sides = random @ (hack.mean(0) - clean.mean(0))
    along = torch.cat([along.double(), random * torch.where(sides < 0, -1.0, 1.0)[:, None]])
    thresholds = (hack.mean(0) + clean.mean(0)) / 2 @ along.T
    return Fixed((*names, *[RANDOM] * len(random)), along.cpu(), thresholds.cpu())


def unit(rows: Tensor, sizes: Sequence[int]) -> Tensor:
    """Return `[n, sum of sizes]` with each module's part of a row at length 1; one of zeros stays."""
    return torch.cat([torch.nn.functional.normalize(part, dim=1) for part in rows.split(list(sizes), 1)], 1)


def between(hacks: Tensor, others: Tensor, sizes: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return the direction from the mean of other rows to that of hacks, per module at length 1, and its middle."""
    hack, other = hacks.mean(0), others.mean(0)
    along = unit((hack - other)[None], sizes)[0]
    return along, (hack + other) @ along / 2


def oracle_margins(
    features: Tensor, hack: Tensor, other: Tensor, fold: Tensor, sizes: Sequence[int]
) -> Tensor:
    """Return margins `[n, 1]`: each fold of problems scored along the mean difference of the other folds' pairs.

    Pairs lie within a problem, so that no rollout has a say in its own score. NaN for a fold without others' pairs.
    """
    margins = features.new_full((len(features), 1), float("nan"), dtype=torch.float64)
    features = features.double()
    for own in fold.unique():
        fits, here = fold[hack] != own, fold == own
        if fits.any():
            along, middle = between(features[hack[fits]], features[other[fits]], sizes)
            margins[here, 0] = features[here] @ along - middle
    return margins


@dataclass(frozen=True)
class Ceiling:
    """Directions of the hacks of a run's last window, one by each half of the problems: mean of the hacks less mean of
    the others, `[2, size]`, per module at length 1; middles `[2]` between both. NaN where a half has none of either."""

    along: Tensor
    middles: Tensor

    @classmethod
    def fit(cls, features: Tensor, hacked: Tensor, half: Tensor, sizes: Sequence[int]) -> "Ceiling":
        """Fit on rows `[n, size]`: hacked, half `[n]`."""
        sides = [(features[half == side].double(), hacked[half == side]) for side in (0, 1)]
        found = [between(own[hacks], own[~hacks], sizes) for own, hacks in sides]
        along, middles = map(torch.stack, zip(*found, strict=True))
        return cls(along, middles)

    def margins(self, features: Tensor, half: Tensor) -> Tensor:
        """Return margins `[n, 1]`, each row scored by what the other half of the problems taught."""
        other = 1 - half
        return ((features.double() * self.along[other]).sum(1) - self.middles[other])[:, None]


def concepts(policy: Policy, sets: Mapping[str, PairSet], n_random: int, seed: int) -> Fixed:
    """Return directions of the residual stream behind the middle layer: unit mean differences of pair sets at the base,
    the one that is asked about first, and random ones."""
    layer, sides = middle(policy.base), []
    for pairs in sets.values():
        own = (batches_of(policy, pairs, side) for side in SIDES)
        sides.append(
            [torch.cat([row_means(policy.base, one, layer)[0] for one in batches]) for batches in own]
        )
    along = torch.stack([hack.mean(0) - clean.mean(0) for hack, clean in sides])
    size = [along.shape[1]]
    random = unit(drawn(n_random, size, seed, CONCEPT).to(along), size)
    return settle(tuple(sets), unit(along, size), random, *sides[0])


def gradients(
    policy: Policy, subject: PairSet, bases: Mapping[str, Basis], n_random: int, seed: int
) -> Fixed:
    """Return directions of the gradient: v_m of `alignment` per module, of bases and random ones.

    bases: that of the pair set that is asked about first. A module without axes has zeros.
    """
    sizes = list(policy.adapter.sizes.values())
    rows = []
    for basis in bases.values():
        parts = {name: basis.S[name] @ V for name, V in basis.V.items()}
        rows.append(torch.cat([parts.get(n, z) for n, z in policy.adapter.zeros().items()]))
    along = unit(torch.stack(rows), sizes)
    random = unit(drawn(n_random, sizes, seed, ALIGNMENT).to(along), sizes)
    return settle(tuple(bases), along, random, *map(flat, pair_gradients(policy, subject)))


def drawn(n: int, sizes: Sequence[int], seed: int, score: str) -> Tensor:
    """Return `[n, sum of sizes]` normal numbers, by seed and score."""
    draws = np.random.Generator(np.random.Philox(key=[seed, 0xDE7EC7 + (score == ALIGNMENT)]))
    return torch.from_numpy(draws.standard_normal((n, sum(sizes)), dtype=np.float32))


def flat(grads: Mapping[str, Tensor]) -> Tensor:
    """Return gradients `[n, size]` per module side by side, each row at length 1: a dot product is `alignment`."""
    return torch.nn.functional.normalize(torch.cat(list(grads.values()), 1), dim=1)


def means(model: Decoder, rows: Sequence[tuple[list[int], list[int]]], layer: int) -> Tensor:
    """Return the mean residual stream of completions `[n, d]`."""
    chunk: list[tuple[list[int], list[int]]]
    found, chunk, tokens = [], [], 0
    for row in rows:
        size = sum(map(len, row))
        if chunk and tokens + size > BATCH_TOKENS:
            found.append(row_means(model, Batch(chunk), layer)[0])
            chunk, tokens = [], 0
        chunk.append(row)
        tokens += size
    return torch.cat([*found, row_means(model, Batch(chunk), layer)[0]])


def tokenised(
    policy: Policy, rollouts: pd.DataFrame, prompts: Mapping[str, list[int]], max_new: int
) -> list[tuple[list[int], list[int]]]:
    """Return the rollouts' prompts and completions as tokens; the end token where the run had drawn it."""
    texts = map(policy.tokenizer.encode, rollouts["completion"])
    ends = ([policy.tokenizer.end] if tokens < max_new else [] for tokens in rollouts["tokens"])
    return [
        (prompts[problem], [*ids, *end])
        for problem, ids, end in zip(rollouts["problem_id"], texts, ends, strict=True)
    ]


@dataclass(frozen=True)
class Window:
    """The rollouts of some steps, in their order. hack, other: rows of its pairs, `[pairs]` each; paired `[n]`: those
    that stand in one; fold, half `[n]`: of their problems."""

    frame: pd.DataFrame
    rows: list[tuple[list[int], list[int]]]
    hacked: Tensor
    fold: Tensor
    half: Tensor
    hack: Tensor
    other: Tensor
    paired: Tensor


def cut(
    policy: Policy, rollouts: pd.DataFrame, prompts: Mapping[str, list[int]], max_new: int, steps: range
) -> Window:
    """Return the window of some steps."""
    frame = rollouts[rollouts["step"].isin(steps)].sort_values("step", kind="stable").reset_index(drop=True)
    hacked, tokens = torch.tensor(frame["hacked"].to_numpy(bool)), torch.tensor(frame["tokens"].to_numpy())
    group = torch.tensor(frame.groupby(["step", "problem_id"]).ngroup().to_numpy())
    places = {id: number for number, id in enumerate(sorted(prompts))}
    place = torch.tensor([places[id] for id in frame["problem_id"]], dtype=torch.long)
    hack, other = matched_pairs(hacked, group, tokens)
    paired = torch.zeros(len(frame), dtype=torch.bool)
    paired[hack] = paired[other] = True
    rows = tokenised(policy, frame, prompts, max_new)
    return Window(frame, rows, hacked, place % FOLDS, place % 2, hack, other, paired)


def features(
    policy: Policy, window: Window, theta: Callable[[int], Parameters]
) -> tuple[Tensor, Tensor, Tensor]:
    """Return streams `[n, d]` at the weights that sampled each rollout, the same at the base, and the gradients of
    those in pairs `[paired, size]` at the former; float32 on the CPU."""
    layer, stream = middle(policy.base), []
    grads = [torch.zeros(0, sum(policy.adapter.sizes.values()))]
    for step, own in window.frame.groupby("step").indices.items():
        model = policy.merged(theta(int(step)))
        stream.append(means(model, [window.rows[i] for i in own], layer).cpu())
        samples = [Sample(*window.rows[i]) for i in own if window.paired[i]]
        if samples:
            grads.append(flat(sample_gradients(model, policy.adapter, samples)[0]).cpu())
    return torch.cat(stream), means(policy.base, window.rows, layer).cpu(), torch.cat(grads)


def measure(
    policy: Policy,
    rollouts: pd.DataFrame,
    prompts: Mapping[str, list[int]],
    max_new: int,
    steps: int,
    theta: Callable[[int], Parameters],
    concept: Fixed,
    along: Fixed,
) -> Iterator[dict]:
    """Yield a row per window, score and direction: `pairs`, `auroc` and `f05` over them; of a concept also
    `auroc_unmatched`, `precision`, `recall` and `flagged`, over all rollouts.

    rollouts: of a run, `COLUMNS`; prompts: tokens by problem id; theta: step -> delta_S that sampled it.
    """
    sizes = list(policy.adapter.sizes.values())
    spans = [range(first, last + 1) for first, last in windows(steps)]
    cuts = [cut(policy, rollouts, prompts, max_new, span) for span in spans]
    end = cuts[-1]
    last = features(policy, end, theta)
    stream, base, grads = last
    by_stream, by_base = (
        Ceiling.fit(found, end.hacked, end.half, [found.shape[1]]) for found in (stream, base)
    )
    by_grads = Ceiling.fit(grads, end.hacked[end.paired], end.half[end.paired], sizes)
    for span, window in zip(spans, cuts, strict=True):
        stream, base, grads = last if window is end else features(policy, window, theta)
        head = {"first": span[0], "last": span[-1], "pairs": len(window.hack)}
        for score, means_of, ceiling in ((CONCEPT, stream, by_stream), (CONCEPT_BASE, base, by_base)):
            size = [means_of.shape[1]]
            oracle = oracle_margins(means_of, window.hack, window.other, window.fold, size)
            margins = torch.cat(
                [concept.margins(means_of), oracle, ceiling.margins(means_of, window.half)], 1
            )
            found = rank(margins, window.hack, window.other)._asdict()
            found |= zip(RATES, flagged_rates(margins, window.hacked), strict=True)
            found["auroc_unmatched"] = unmatched_auroc(margins, window.hacked)
            yield from rows_of({"score": score} | head, concept.names, found)
        place = torch.cumsum(window.paired, 0) - 1  # of a row among those in pairs
        hack, other = place[window.hack], place[window.other]
        oracle = oracle_margins(grads, hack, other, window.fold[window.paired], sizes)
        halves = by_grads.margins(grads, window.half[window.paired])
        ranked = rank(torch.cat([along.margins(grads), oracle, halves], 1), hack, other)
        yield from rows_of({"score": ALIGNMENT} | head, along.names, ranked._asdict())


NUMBERS = ("auroc", "f05", *RATES, "auroc_unmatched")


def rows_of(head: dict, names: Sequence[str], found: Mapping[str, Tensor]) -> Iterator[dict]:
    """Yield a row per direction, oracle and ceiling last; null for what is not there."""
    for i, name in enumerate((*names, ORACLE, CEILING)):
        values = {key: finite(found[key][i]) if key in found else None for key in NUMBERS}
        yield {**head, "direction": name, **values}
