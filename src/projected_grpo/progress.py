"""Progress of long work: a bar on a terminal, a plain line for every tenth elsewhere, and in the job's log."""

import logging
import sys
from collections.abc import Iterator
from typing import Self

from tqdm import tqdm

log = logging.getLogger(__name__)


class Progress:
    """`for i in Progress(n, "base")`, or `with Progress(n, "pool") as bar: ... bar.update()`.

    `note(text)` is what the bar or the next line shows, e.g. the loss; a noted line also goes to the log.
    """

    def __init__(self, total: int, name: str):
        self.total, self.name, self.text, self.done = total, name, "", 0
        self.bar = tqdm(total=total, desc=name, leave=False) if sys.stderr.isatty() else None

    def note(self, text: str) -> None:
        self.text = text

    def update(self, n: int = 1) -> None:
        """Say that `n` more are done."""
        tenth = self.done * 10 // self.total
        self.done += n
        if self.bar is not None:
            self.bar.set_postfix_str(self.text, refresh=False)
            self.bar.update(n)
        if self.done * 10 // self.total > tenth:
            line = f"{self.name}: {self.done}/{self.total} {self.text}".rstrip()
            if self.bar is None:
                print(line, file=sys.stderr, flush=True)
            if self.text:
                log.info("%s", line)

    def __iter__(self) -> Iterator[int]:
        with self:
            for i in range(self.total):
                yield i
                self.update()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.close()
