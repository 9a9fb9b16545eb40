"""Progress of long work, in the job's log: `./snakemake` shows from there how far a job is (docs/architecture.md)."""

import logging
import time
from collections.abc import Iterator

log = logging.getLogger(__name__)
PAUSE = 1.0  # seconds between two lines at the least


class Progress:
    """`for i in Progress(n, "base")`, or `progress.update()` after each.

    `note(text)` is what the next line says beside `k/n`, e.g. the loss.
    """

    def __init__(self, total: int, name: str):
        self.total, self.name, self.text, self.done = total, name, "", 0
        self.said = 0.0

    def note(self, text: str) -> None:
        self.text = text

    def update(self, n: int = 1) -> None:
        """Say that `n` more are done."""
        self.done += n
        now = time.monotonic()
        if now - self.said >= PAUSE or self.done >= self.total:
            self.said = now
            log.info("%s", f"{self.name}: {self.done}/{self.total} {self.text}".rstrip())

    def __iter__(self) -> Iterator[int]:
        for i in range(self.total):
            yield i
            self.update()
