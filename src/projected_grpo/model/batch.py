"""A batch as a tree of tokens: what several rows begin with is computed once, prompt or completion.

A *node* is a token and all that precedes it; rows that begin alike share nodes up to where they part. Nodes are
packed without padding, a row's own ones side by side; only attention looks at the batch otherwise (`tiles`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from projected_grpo.model.tiles import Attend, Branch, tree_attention

Rows = Sequence[tuple[Sequence[int], Sequence[int]]]  # token ids of (prompt, completion)


class Batch:
    """Rows of (prompt, completion) and the nodes that predict their completions.

    rows: no prompt is empty, a completion may be; labels: a number per row, of a label of its own in the gradient:
    rows of different labels share no node (None: all 0). whole: have nodes also for the rows' last tokens, which
    predict nothing. Raises ValueError for an empty prompt or labels that do not fit.
    """

    tokens: Tensor  # [nodes]
    positions: Tensor  # [nodes]
    labels: Tensor  # [nodes]
    predictors: Tensor  # [predictors] nodes that precede a completion token, ascending
    targets: Tensor  # [predictions] the tokens that are predicted, ordered by predictor
    source: Tensor  # [predictions] who predicts it: an index into `predictors`
    offsets: list[int]  # [predictors + 1] where each one's predictions begin
    picks: Tensor  # [completion tokens] the prediction of each, row after row

    def __init__(self, rows: Rows, labels: Sequence[int] | None = None, whole: bool = False):
        labels = [0] * len(rows) if labels is None else labels
        if len(labels) != len(rows):
            raise ValueError(f"{len(labels)} labels for {len(rows)} rows")
        if any(len(prompt) == 0 for prompt, _ in rows):
            raise ValueError("an empty prompt: nothing precedes its completion's first token")
        self.rows = rows
        texts = [[*prompt, *completion] for prompt, completion in rows]

        # All distinct prefixes. In this order each row shares most with the one before it.
        order = sorted(range(len(rows)), key=lambda row: (labels[row], texts[row]))
        path, before = np.zeros(0, np.int64), None
        paths = [path] * len(rows)  # of each row, its prefixes
        tokens: list[int] = []
        added: list[tuple[int, int, int]] = []  # of each row in order: what it shares, what it adds
        for row in order:
            same = 0
            if before is not None and labels[row] == labels[before]:
                same = _alike(texts[row], texts[before])
            begin = len(tokens)
            tokens += texts[row][same:]
            paths[row] = path = np.concatenate([path[:same], np.arange(begin, len(tokens))])
            added.append((same, begin, len(tokens)))
            before = row

        # Nodes are those that precede a token to predict.
        begins = [len(prompt) for prompt, _ in rows]
        ends = [
            len(text) if whole else len(text) - 1 if len(text) > begin else 0
            for text, begin in zip(texts, begins, strict=True)
        ]
        parent, depth, owner = np.zeros((3, len(tokens)), np.int64)
        is_node, is_target = np.zeros((2, len(tokens)), bool)
        for path, begin, end, label in zip(paths, begins, ends, labels, strict=True):
            parent[path[1:]], depth[path], owner[path] = path[:-1], np.arange(len(path)), label
            is_node[path[:end]], is_target[path[begin:]] = True, True
        node = np.concatenate([[0], is_node.cumsum()])  # of a prefix; the nodes before it
        self.paths = [node[path[:end]] for path, end in zip(paths, ends, strict=True)]
        self.branches = [
            Branch(int(node[begin]), int(node[end]), node[paths[row][:same]])
            for row, (same, begin, end) in zip(order, added, strict=True)
        ]
        self.longest = int(depth.max(initial=-1)) + 1

        # What they predict, predictor by predictor.
        predicted = np.flatnonzero(is_target)
        predicted = predicted[np.argsort(parent[predicted], kind="stable")]
        predictors, source = np.unique(node[parent[predicted]], return_inverse=True)
        place = np.zeros(len(tokens), np.int64)
        place[predicted] = np.arange(len(predicted))
        picks = [place[path[begin:]] for path, begin in zip(paths, begins, strict=True)]
        self.offsets = [0, *np.bincount(source, minlength=len(predictors)).cumsum().tolist()]
        ids = np.array(tokens, np.int64)
        self.tokens, self.positions, self.labels = (
            torch.from_numpy(values[is_node]) for values in (ids, depth, owner)
        )
        self.predictors, self.source, self.targets = map(
            torch.from_numpy, (predictors, source, ids[predicted])
        )
        self.picks = torch.from_numpy(np.concatenate(picks) if picks else place)

    def attention(self, dtype: torch.dtype) -> Attend:
        """Each node sees its ancestors and itself; asking are all nodes, or those that predict."""
        asking = [np.arange(len(self.tokens)), self.predictors.cpu().numpy()]
        return tree_attention(self.branches, asking, dtype, self.device)

    @property
    def device(self) -> torch.device:
        return self.tokens.device

    def to(self, device: torch.device) -> Batch:
        """Moves the batch in place; returns it."""
        if self.device != torch.device(device):
            for name in ("tokens", "positions", "labels", "predictors", "targets", "source", "picks"):
                setattr(self, name, getattr(self, name).to(device))
        return self


def _alike(a: Sequence[int], b: Sequence[int]) -> int:
    """Return how many tokens two rows begin with in common."""
    for at, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return at
    return min(len(a), len(b))
