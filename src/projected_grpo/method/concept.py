"""A concept as one direction of the residual stream: the mean difference of a pair set at a layer.

A rollout's score is the mean over its completion tokens of the stream along that direction, in standard deviations of
the pool's rows at the base (docs/method.md, "Concept").
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from projected_grpo.errors import UserError
from projected_grpo.method.pairs import PairSet
from projected_grpo.method.policy import Policy
from projected_grpo.model.batch import Batch
from projected_grpo.model.decoder import Decoder

TAIL = 0.05  # of each side's pairs that lie beyond their cut


@dataclass(frozen=True)
class Concept:
    """direction: `[d]`, unit length, hack-ward; sd: of the pool's rows; norm: mean length of their stream there.

    hack, clean: `[n_pairs]` standardised scores of the pairs' sides, all at the base.
    """

    layer: int
    direction: Tensor
    sd: float
    norm: float
    hack: Tensor
    clean: Tensor

    def scores(self, model: Decoder, batch: Batch) -> Tensor:
        """Return `[rows]` standardised scores at a model's weights, float64 on the CPU."""
        return along(row_means(model, batch, self.layer)[0], self.direction) / self.sd

    @property
    def threshold(self) -> float:
        """The middle between the mean scores of both sides: what a monitor flags lies above."""
        return float(self.hack.mean() + self.clean.mean()) / 2

    @property
    def cuts(self) -> tuple[float, float]:
        """Return (low, high): where the hacks begin and where the clean sides end, but for 5% of each, in order."""
        low, high = sorted((float(self.hack.quantile(TAIL)), float(self.clean.quantile(1 - TAIL))))
        return low, high


def row_means(model: Decoder, batch: Batch, layer: int) -> tuple[Tensor, Tensor]:
    """Return each row's mean stream over its completion tokens `[rows, d]`, and the stream's length at each `[tokens]`.

    Both float32; a row without tokens is zero.
    """
    stream = model.residuals(batch, layer).float()
    lengths = torch.tensor([len(completion) for _, completion in batch.rows], device=stream.device)
    row = torch.repeat_interleave(torch.arange(len(lengths), device=stream.device), lengths)
    sums = stream.new_zeros(len(lengths), stream.shape[1]).index_add_(0, row, stream)
    return sums / lengths.clamp_min(1)[:, None], stream.norm(dim=1)


def along(means: Tensor, direction: Tensor) -> Tensor:
    """Return means `[n, d]` along a direction, float64 on the CPU."""
    return (means.double() @ direction.double()).cpu()


def middle(model: Decoder) -> int:
    """Return the layer after which half of the layers are done."""
    return (model.config.num_hidden_layers - 1) // 2


def make_concept(
    policy: Policy, pairs: PairSet, pool: Sequence[Batch], layer: int | None, control: str, seed: int
) -> Concept:
    """Return the concept of a pair set at the policy's base; pool: batches of the rows that it is standardised on.

    layer: None for the middle one; control: `random` draws the direction by seed, all else stays. Raises UserError on a
    layer that the model has not, and where sides or rows do not differ.
    """
    model, layers = policy.base, policy.base.config.num_hidden_layers
    layer = middle(model) if layer is None else layer
    if layer >= layers:
        raise UserError(f"layer: {layer}, allowed: 0 to {layers - 1}, the layers of the model")
    sides = [
        torch.cat([row_means(model, one, layer)[0] for one in batches_of(policy, pairs, side)])
        for side in SIDES
    ]
    direction = sides[0].mean(0) - sides[1].mean(0)
    if control == "random":
        draws = np.random.Generator(np.random.Philox(key=[seed, 0xD1EC]))
        direction = torch.from_numpy(draws.standard_normal(len(direction))).to(direction)
    if not direction.any():
        raise UserError(f"pair set {pairs.name}: hack and clean sides have one mean after layer {layer}")
    direction = direction / direction.norm()
    read = [row_means(model, batch, layer) for batch in pool]
    scores = torch.cat([along(means, direction) for means, _ in read]) if read else torch.zeros(0)
    sd = float(scores.std()) if len(scores) > 1 else 0.0
    if not sd > 0:
        raise UserError(
            f"layer {layer}: the {len(scores)} rows of the pool do not differ along the direction"
        )
    norm = float(torch.cat([lengths for _, lengths in read]).mean())
    hack, clean = (along(side, direction) / sd for side in sides)
    return Concept(layer, direction, sd, norm, hack, clean)


SIDES = ("hack", "clean")


def batches_of(policy: Policy, pairs: PairSet, side: str) -> list[Batch]:
    """Return a batch of each pair's prompt with one side, end token included."""
    encode, chat, end = policy.tokenizer.encode, policy.tokenizer.encode_chat, policy.tokenizer.end
    return [Batch([(chat(pair.prompt), [*encode(getattr(pair, side)), end])]) for pair in pairs.pairs]
