"""A run's checkpoint: written after every step, whole or absent, never trusted when damaged or of another run.

Folder: `state.pt` (sha256, then the tensors and rows of all steps so far) and one rollout file per step, whose hash
stands in the state. It is removed when the run's results are in place.
"""

import hashlib
import io
import logging
import pickle
import shutil
from pathlib import Path
from typing import Any

import torch

from projected_grpo.files import atomic, read_jsonl, write_jsonl

log = logging.getLogger(__name__)


class Checkpoint:
    """The checkpoint of one run; `key` names everything that the run depends on."""

    def __init__(self, folder: Path, key: str):
        self.folder = Path(folder)
        self.key = key
        self._digests: list[str] = []

    def _part(self, step: int) -> Path:
        return self.folder / f"rollouts_{step:04d}.jsonl.gz"

    def save(self, step: int, state: dict[str, Any], rollouts: list[dict]) -> None:
        """Store the state after `step` (1, 2, ...) and the rollouts of that step alone."""
        part = self._part(step)
        write_jsonl(part, rollouts)
        self._digests.append(hashlib.sha256(part.read_bytes()).hexdigest())
        buffer = io.BytesIO()
        torch.save({"key": self.key, "step": step, "parts": self._digests, "state": state}, buffer)
        data = buffer.getvalue()
        with atomic(self.folder / "state.pt") as temporary:
            temporary.write_bytes(hashlib.sha256(data).digest() + data)

    def load(self) -> tuple[int, dict[str, Any]]:
        """Return (last finished step, state), or (0, {}) when there is none that can be used; says why in the log."""
        path = self.folder / "state.pt"
        if not path.exists():
            return 0, {}
        data = path.read_bytes()
        if hashlib.sha256(data[32:]).digest() != data[:32]:
            return self._refuse("is damaged")
        try:
            saved = torch.load(io.BytesIO(data[32:]), weights_only=True)
        except (RuntimeError, pickle.UnpicklingError) as error:
            return self._refuse(f"cannot be read ({error})")
        if saved["key"] != self.key:
            return self._refuse("belongs to other settings, code or inputs")
        for step, digest in enumerate(saved["parts"], 1):
            part = self._part(step)
            if not part.exists() or hashlib.sha256(part.read_bytes()).hexdigest() != digest:
                return self._refuse(f"lacks an intact {part.name}")
        self._digests = saved["parts"]
        return saved["step"], saved["state"]

    def _refuse(self, why: str) -> tuple[int, dict[str, Any]]:
        log.warning("checkpoint %s %s: starting from step 1", self.folder, why)
        self.remove()
        return 0, {}

    def rollouts(self) -> list[dict]:
        """Return the rollouts of all steps so far."""
        return [row for step in range(1, len(self._digests) + 1) for row in read_jsonl(self._part(step))]

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self._digests = []
