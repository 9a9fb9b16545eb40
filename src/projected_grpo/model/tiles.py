"""Attention in a tree of tokens: each node sees its ancestors and itself.

Nodes stand in the order in which rows own them, so that the nodes of consecutive rows, a *tile*, see one stretch of
nodes and one path that leads to it. A tile is a dense product under a mask; small ones are cheap to join, long
completions get one each. Tiles of similar size are padded into one rectangle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

# (layer, q [queries, H, D], k, v [nodes, KV, D]) -> as q
Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]

# Masked query-key pairs that cost as much as one tile more, and as one rectangle more.
PAIRS = {"cpu": 2000, "cuda": 100_000}


@dataclass
class Branch:
    """What a row adds to a tree: nodes `start ... stop-1`, behind the nodes `path` that it shares with earlier rows."""

    start: int
    stop: int
    path: np.ndarray


class Tile:
    """Branches one after the other: their nodes see each other and the path of the first."""

    def __init__(self, branch: Branch):
        self.start, self.stop, self.path = branch.start, branch.stop, branch.path
        self.branches = [branch]

    def waste(self, branch: Branch) -> int:
        """Pairs computed in vain if the branch joins instead of being a tile of its own."""
        n, own = self.stop - self.start, branch.stop - branch.start
        return own * (2 * n + len(self.path) - len(branch.path))

    def join(self, branch: Branch) -> None:
        self.stop = branch.stop
        self.branches.append(branch)

    @property
    def size(self) -> int:
        """Keys that its nodes see."""
        return len(self.path) + self.stop - self.start

    @property
    def keys(self) -> np.ndarray:
        return np.concatenate([self.path, np.arange(self.start, self.stop)])

    def allowed(self) -> np.ndarray:
        """Which key each node sees, bool `[nodes, keys]`."""
        first = len(self.path)
        seen = np.zeros((self.stop - self.start, first + self.stop - self.start), bool)
        for branch in self.branches:
            depth, own = len(branch.path), branch.stop - branch.start
            # An ancestor outside the tile lies on the first branch's path, at its own depth.
            inside = branch.path >= self.start
            above = np.where(inside, branch.path - self.start + first, np.arange(depth))
            rows = slice(branch.start - self.start, branch.stop - self.start)
            seen[rows, above] = True
            seen[rows, first + rows.start : first + rows.stop] = np.tri(own, dtype=bool)
        return seen


def tiles(branches: Sequence[Branch], pairs: int) -> list[Tile]:
    """Join consecutive branches as long as the masked pairs cost less than one more tile."""
    made: list[Tile] = []
    for branch in branches:
        if branch.start == branch.stop:
            continue
        if made and made[-1].waste(branch) <= pairs:
            made[-1].join(branch)
        else:
            made.append(Tile(branch))
    return made


class Plan:
    """Attention of some nodes in rectangles of padded tiles; `x[queries]` and `x[keys]` fill them, one by one.

    queries: which nodes ask, ascending.
    """

    def __init__(self, made: Sequence[Tile], queries: np.ndarray, dtype: torch.dtype, device: torch.device):
        at = np.searchsorted(queries, [[tile.start, tile.stop] for tile in made]).reshape(-1, 2)
        asked = [
            (slice(*span), tile) for span, tile in zip(at.tolist(), made, strict=True) if span[0] < span[1]
        ]
        self.shapes: list[tuple[int, int, int]] = []  # tiles, queries, keys of each rectangle
        self.masks: list[Tensor] = []  # additive, [tiles, 1, queries, keys]
        from_queries, from_keys, place, size = [], [], np.zeros(len(queries), np.int64), 0
        for group in _rectangles(asked, PAIRS[device.type]):
            n, width = len(group), max(span.stop - span.start for span, _ in group)
            depth = max(tile.size for _, tile in group)
            q, k = np.zeros((n, width), np.int64), np.zeros((n, depth), np.int64)
            hidden = np.ones((n, 1, width, depth), bool)
            for row, (span, tile) in enumerate(group):
                own = np.arange(span.stop - span.start)
                q[row, : len(own)] = np.arange(span.start, span.stop)
                k[row, : tile.size] = tile.keys
                hidden[row, 0, : len(own), : tile.size] = ~tile.allowed()[queries[span] - tile.start]
                hidden[row, 0, len(own) :, 0] = False  # what pads must see something
                place[span] = size + row * width + own
            from_queries.append(q.ravel())
            from_keys.append(k.ravel())
            self.shapes.append((n, width, depth))
            mask = torch.zeros(hidden.shape, dtype=dtype).masked_fill_(torch.from_numpy(hidden), -torch.inf)
            self.masks.append(mask.to(device))
            size += n * width
        self.queries, self.keys, self.place = (
            torch.from_numpy(x).to(device)
            for x in (np.concatenate(from_queries), np.concatenate(from_keys), place)
        )

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """q `[queries, H, D]` on k, v `[nodes, KV, D]` -> as q."""
        q = q.index_select(0, self.queries).split([n * width for n, width, _ in self.shapes])
        sizes = [n * depth for n, _, depth in self.shapes]
        k, v = (x.index_select(0, self.keys).split(sizes) for x in (k, v))
        out = []
        for shape, mask, *parts in zip(self.shapes, self.masks, q, k, v, strict=True):
            parts = [x.view(shape[0], -1, *x.shape[1:]).transpose(1, 2) for x in parts]
            out.append(masked_attention(*parts, mask).transpose(1, 2).flatten(0, 1))  # type: ignore[call-arg]
        return torch.cat(out).index_select(0, self.place)


def _rectangles(asked: list[tuple[slice, Tile]], pairs: int) -> list[list[tuple[slice, Tile]]]:
    """Group tiles of similar size: what padding wastes costs less than one more product."""
    groups: list[list[tuple[slice, Tile]]] = []
    useful, width, depth = 0, 0, 0
    for span, tile in sorted(asked, key=lambda part: (part[0].start - part[0].stop, -part[1].size)):
        own = span.stop - span.start
        padded = width * max(depth, tile.size) * (len(groups[-1]) + 1) if groups else 0
        if not groups or padded > 1.25 * (useful + own * tile.size) + 2 * pairs:
            groups.append([])
            useful, width, depth = 0, own, 0
        groups[-1].append((span, tile))
        useful, depth = useful + own * tile.size, max(depth, tile.size)
    return groups


def masked_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """q `[T, H, L, D]` on k, v `[T, KV, S, D]` under an additive mask `[T, 1, L, S]` -> as q."""
    mask = mask.expand(-1, q.shape[1], -1, -1)
    if q.is_cuda:  # the memory-efficient kernel takes masks but no grouped heads
        k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)


def tree_attention(
    branches: Sequence[Branch], queries: Sequence[np.ndarray], dtype: torch.dtype, device: torch.device
) -> Attend:
    """Attention in the tree of `branches`; queries: the sets of nodes, of different size, that may ask."""
    made = tiles(branches, PAIRS[device.type])
    plans = {len(asking): Plan(made, asking, dtype, device) for asking in queries}
    return lambda i, q, k, v: plans[len(q)].attend(q, k, v)
