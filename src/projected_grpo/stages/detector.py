"""How well directions tell hacks from other rollouts of a run, as it trains (docs/detector.md, question Q18).

Rollouts of a run's first and last steps are scored at the weights that sampled them, rebuilt from the stored delta_S.
Two scores: `concept`, the mean residual stream of a completion along a direction, and `alignment`, that of a rollout's
gradient with the axes of the pair set that is asked about. The former has the directions of pair sets, random ones, an
oracle's, and a ceiling: what the run's own last rollouts on half of the problems say of the other half.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import normalize

from projected_grpo.method.adapter import Parameters
from projected_grpo.method.basis import Basis
from projected_grpo.method.concept import SIDES, batches_of, middle, row_means
from projected_grpo.method.gradients import Sample, _chunks, sample_gradients
from projected_grpo.method.pairs import PairSet
from projected_grpo.method.policy import Policy
from projected_grpo.model.batch import Batch
from projected_grpo.model.decoder import Decoder
from projected_grpo.stages.ranking import matched_auroc, matched_pairs, recall, unmatched_auroc, windows
from projected_grpo.stages.replay import finite

CONCEPT, ALIGNMENT = "concept", "alignment"
RANDOM, ORACLE, CEILING = "random", "oracle", "ceiling"
FOLDS = 5  # of problems: the oracle scores rollouts of one by pairs of the others
BATCH_TOKENS = 8192
COLUMNS = ("step", "problem_id", "tokens", "hacked", "completion")  # of `rollouts.parquet`


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


def between(hacks: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
    """Return the direction from the mean of other rows to that of hacks, at length 1, and its middle."""
    hack, other = hacks.mean(0), others.mean(0)
    along = normalize((hack - other)[None])[0]
    return along, (hack + other) @ along / 2


def oracle_margins(features: Tensor, hack: Tensor, other: Tensor, fold: Tensor) -> Tensor:
    """Return margins `[n, 1]`: each fold of problems scored along the mean difference of the other folds' pairs.

    Pairs lie within a problem, so that no rollout has a say in its own score. NaN for a fold without others' pairs.
    """
    margins = features.new_full((len(features), 1), float("nan"), dtype=torch.float64)
    features = features.double()
    for own in fold.unique():
        fits, here = fold[hack] != own, fold == own
        if fits.any():
            along, middle = between(features[hack[fits]], features[other[fits]])
            margins[here, 0] = features[here] @ along - middle
    return margins


@dataclass(frozen=True)
class Ceiling:
    """Directions of the hacks of a run's last window, one by each half of the problems: mean of the hacks less mean of
    the others, `[2, size]`, at length 1; middles `[2]` between both. NaN where a half has none of either."""

    along: Tensor
    middles: Tensor

    @classmethod
    def fit(cls, features: Tensor, hacked: Tensor, half: Tensor) -> "Ceiling":
        """Fit on rows `[n, size]`: hacked, half `[n]`."""
        sides = [(features[half == side].double(), hacked[half == side]) for side in (0, 1)]
        found = [between(own[hacks], own[~hacks]) for own, hacks in sides]
        along, middles = map(torch.stack, zip(*found, strict=True))
        return cls(along, middles)

    def margins(self, features: Tensor, half: Tensor) -> Tensor:
        """Return margins `[n, 1]`, each row scored by what the other half of the problems taught."""
        other = 1 - half
        return ((features.double() * self.along[other]).sum(1) - self.middles[other])[:, None]


def concepts(policy: Policy, sets: Mapping[str, PairSet], n_random: int, seed: int) -> Fixed:
    """Return directions of the residual stream behind the middle layer: unit mean differences of pair sets at the base,
    the one that is asked about first, and random ones, turned so that its hacks lie above their clean sides."""
    layer, sides = middle(policy.base), []
    for pairs in sets.values():
        own = (batches_of(policy, pairs, side) for side in SIDES)
        sides.append(
            [torch.cat([row_means(policy.base, one, layer)[0] for one in batches]) for batches in own]
        )
    along = torch.stack([hack.mean(0) - clean.mean(0) for hack, clean in sides])
    draws = np.random.Generator(np.random.Philox(key=[seed, 0xDE7EC7]))
    drawn = torch.from_numpy(draws.standard_normal((n_random, along.shape[1]), dtype=np.float32))
    random = normalize(drawn.to(along)).double()
    hack, clean = (rows.double().mean(0) for rows in sides[0])
    turned = random * torch.where(random @ (hack - clean) < 0, -1.0, 1.0)[:, None]
    along = torch.cat([normalize(along).double(), turned])
    thresholds = (hack + clean) / 2 @ along.T
    return Fixed((*sets, *[RANDOM] * n_random), along.cpu(), thresholds.cpu())


def alignment(policy: Policy, basis: Basis) -> Tensor:
    """Return v_m of `alignment` per module, side by side `[size]`; zeros for a module without axes."""
    parts = {name: basis.S[name] @ V for name, V in basis.V.items()}
    rows = [normalize(parts.get(name, zero)[None])[0] for name, zero in policy.adapter.zeros().items()]
    return torch.cat(rows).double().cpu()


def flat(grads: Mapping[str, Tensor]) -> Tensor:
    """Return gradients `[n, size]` per module side by side, each row at length 1: a dot product is `alignment`."""
    return normalize(torch.cat(list(grads.values()), 1))


def means(model: Decoder, rows: Sequence[tuple[list[int], list[int]]], layer: int) -> Tensor:
    """Return the mean residual stream of completions `[n, d]`."""
    chunks = _chunks([Sample(*row) for row in rows], BATCH_TOKENS)
    batches = (Batch([(one.prompt, one.completion) for one in chunk]) for chunk in chunks)
    return torch.cat([row_means(model, batch, layer)[0] for batch in batches])


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


def features(policy: Policy, window: Window, theta: Callable[[int], Parameters]) -> tuple[Tensor, Tensor]:
    """Return streams `[n, d]` at the weights that sampled each rollout, and the gradients of those in pairs
    `[paired, size]`; float32 on the CPU."""
    layer, stream = middle(policy.base), []
    grads = [torch.zeros(0, sum(policy.adapter.sizes.values()))]
    for step, own in window.frame.groupby("step").indices.items():
        model = policy.merged(theta(int(step)))
        stream.append(means(model, [window.rows[i] for i in own], layer).cpu())
        samples = [Sample(*window.rows[i]) for i in own if window.paired[i]]
        if samples:
            grads.append(flat(sample_gradients(model, policy.adapter, samples)[0]).cpu())
    return torch.cat(stream), torch.cat(grads)


def measure(
    policy: Policy,
    rollouts: pd.DataFrame,
    prompts: Mapping[str, list[int]],
    max_new: int,
    steps: int,
    theta: Callable[[int], Parameters],
    concept: Fixed,
    aligned: Tensor,
) -> Iterator[dict]:
    """Yield a row per window, score and direction: `pairs`, and `auroc` over them; of a concept also `auroc_unmatched`
    and `recall`, over all rollouts. The alignment has the first of the directions alone.

    rollouts: of a run, `COLUMNS`; prompts: tokens by problem id; theta: step -> delta_S that sampled it.
    """
    spans = [range(first, last + 1) for first, last in windows(steps)]
    cuts = [cut(policy, rollouts, prompts, max_new, span) for span in spans]
    found = [features(policy, window, theta) for window in cuts]
    ceiling = Ceiling.fit(found[-1][0], cuts[-1].hacked, cuts[-1].half)
    for span, window, (stream, grads) in zip(spans, cuts, found, strict=True):
        head = {"first": span[0], "last": span[-1], "pairs": len(window.hack)}
        oracle = oracle_margins(stream, window.hack, window.other, window.fold)
        margins = torch.cat([concept.margins(stream), oracle, ceiling.margins(stream, window.half)], 1)
        numbers = {
            "auroc": matched_auroc(margins, window.hack, window.other),
            "auroc_unmatched": unmatched_auroc(margins, window.hacked),
            "recall": recall(margins, window.hacked),
        }
        for i, name in enumerate((*concept.names, ORACLE, CEILING)):
            own = {key: finite(values[i]) for key, values in numbers.items()}
            yield {"score": CONCEPT, **head, "direction": name, **own}
        place = torch.cumsum(window.paired, 0) - 1  # of a row among those in pairs
        ranked = matched_auroc(grads.double() @ aligned[:, None], place[window.hack], place[window.other])
        yield {"score": ALIGNMENT, **head, "direction": concept.names[0], "auroc": finite(ranked[0])}
