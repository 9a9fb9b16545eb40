"""Training state in one file behind its own digest: written whole or not at all, never used when damaged."""

import hashlib
import io
import logging
import os
import pickle
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from projected_grpo.files import atomic

log = logging.getLogger(__name__)

EVERY = 20.0  # seconds between two states at the least
SHARE = 20  # and as many times what the last one took to write


class Unusable(Exception):
    """Why a state cannot be used."""


class Optimizer(Protocol):
    """What of an optimizer is kept."""

    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> None: ...


def write_sealed(path: Path, content: dict[str, Any]) -> None:
    """Write tensors and plain values to `path`, sha256 first."""
    buffer = io.BytesIO()
    torch.save(content, buffer)
    data = buffer.getbuffer()
    with atomic(path) as temporary, open(temporary, "wb") as file:
        file.write(hashlib.sha256(data).digest())
        file.write(data)


def read_sealed(path: Path) -> dict[str, Any]:
    """Return what `write_sealed` wrote. Raises Unusable where it is not that."""
    with open(path, "rb") as file:
        digest, data = file.read(32), file.read()
    if hashlib.sha256(data).digest() != digest:
        raise Unusable("is damaged")
    try:
        return torch.load(io.BytesIO(data), weights_only=True)
    except (RuntimeError, pickle.UnpicklingError) as error:
        raise Unusable(f"cannot be read ({error})") from error


def key_of(*parts: object) -> str:
    """Return a hash of all that decides a training, each part by its `repr`."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()


class Saved:
    """What a training goes on from when it was stopped: weights, optimizers and losses, kept from time to time.

    path: the file; key: names everything that the training depends on (`key_of`); every: seconds between two states.
    """

    def __init__(self, path: str | os.PathLike, key: str, every: float = EVERY):
        self.path, self.key, self.every = Path(path), key, every
        self.last, self.cost = time.monotonic(), 0.0
        self.weights: Mapping[str, Tensor] = {}
        self.optimizers: Sequence[Optimizer] = ()

    def watch(self, weights: Mapping[str, Tensor], *optimizers: Optimizer) -> None:
        """Say what is trained: `resume` sets it, `keep` stores it."""
        self.weights, self.optimizers = weights, optimizers

    def resume(self) -> list[float]:
        """Put weights and optimizers where they were; return the losses of the steps done, none where all begins."""
        if not self.path.exists():
            return []
        try:
            content = read_sealed(self.path)
            if content["key"] != self.key:
                raise Unusable("belongs to other settings, code or inputs")
        except Unusable as error:
            log.warning("%s %s: starting from step 1", self.path, error)
            return []
        with torch.no_grad():
            for name, W in self.weights.items():
                W.copy_(content["weights"][name])
        for optimizer, state in zip(self.optimizers, content["optimizers"], strict=True):
            optimizer.load_state_dict(state)
        log.info("going on after step %d", len(content["losses"]))
        return content["losses"]

    def keep(self, losses: list[float]) -> None:
        """Write the state after a step, if the last one is old enough. losses: of all steps so far."""
        start = time.monotonic()
        if start - self.last < max(self.every, SHARE * self.cost):
            return
        content = {
            "key": self.key,
            "weights": {name: W.detach() for name, W in self.weights.items()},
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "losses": losses,
        }
        write_sealed(self.path, content)
        self.last = time.monotonic()
        self.cost = self.last - start

    def remove(self) -> None:
        """Take the file away: what it led to is in its place."""
        self.path.unlink(missing_ok=True)
