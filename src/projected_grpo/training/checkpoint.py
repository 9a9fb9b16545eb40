"""A run's checkpoint: written after every step, whole or absent, never trusted when damaged or of another run.

Folder: `state.pt` (tensors and rows of all steps so far, sealed) and a few files per step, of its rollouts
and of delta_S after it, whose hashes stand in the state. It is removed when the run's results are in place.
"""

import logging
import shutil
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file

from projected_grpo.digests import file_digest
from projected_grpo.files import atomic, read_jsonl, write_jsonl
from projected_grpo.method.adapter import Parameters
from projected_grpo.model.sealed import Unusable, read_sealed, write_sealed

log = logging.getLogger(__name__)


class Checkpoint:
    """The checkpoint of one run; `key` names everything that the run depends on."""

    def __init__(self, folder: Path, key: str):
        self.folder = Path(folder)
        self.key = key
        self._parts: dict[str, str] = {}  # file name -> its digest, in the order of the steps

    def save(
        self, step: int, state: dict[str, Any], rows: dict[str, list[dict]], deltas: Parameters | None
    ) -> None:
        """Store the state after `step` (1, 2, ...), and of that step alone its rows by kind, and delta_S if any."""
        for kind, own in rows.items():
            name = f"{kind}_{step:04d}.jsonl.gz"
            write_jsonl(self.folder / name, own)
            self._parts[name] = file_digest(self.folder / name)
        if deltas is not None:
            name = f"deltas_{step:04d}.safetensors"
            with atomic(self.folder / name) as temporary:
                save_file({key: value.cpu().contiguous() for key, value in deltas.items()}, temporary)
            self._parts[name] = file_digest(self.folder / name)
        content = {"key": self.key, "step": step, "parts": self._parts, "state": state}
        write_sealed(self.folder / "state.pt", content)

    def load(self) -> tuple[int, dict[str, Any]]:
        """Return (last finished step, state), or (0, {}) when there is none that can be used; says why in the log."""
        path = self.folder / "state.pt"
        if not path.exists():
            return 0, {}
        try:
            saved = read_sealed(path)
        except Unusable as error:
            return self._refuse(str(error))
        if saved["key"] != self.key:
            return self._refuse("belongs to other settings, code or inputs")
        for name, digest in saved["parts"].items():
            part = self.folder / name
            if not part.exists() or file_digest(part) != digest:
                return self._refuse(f"lacks an intact {name}")
        self._parts = saved["parts"]
        return saved["step"], saved["state"]

    def _refuse(self, why: str) -> tuple[int, dict[str, Any]]:
        log.warning("checkpoint %s %s: starting from step 1", self.folder, why)
        self.remove()
        return 0, {}

    def rows(self, kind: str) -> list[dict]:
        """Return the rows of one kind of all steps so far."""
        return [row for part in self._of(kind) for row in read_jsonl(part)]

    def deltas(self) -> list[Parameters]:
        """Return delta_S after each step so far; none where it was not stored."""
        return [load_file(part) for part in self._of("deltas")]

    def _of(self, kind: str) -> list[Path]:
        return [self.folder / name for name in self._parts if name.startswith(f"{kind}_")]

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self._parts = {}
