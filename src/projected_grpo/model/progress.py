"""Progress of a loop: a bar on a terminal, a plain line for every tenth elsewhere (logs)."""

import sys
from collections.abc import Iterator

from tqdm import tqdm


class Progress:
    """`for i in Progress(n, "base")`; `note(text)` is what the bar or the next line shows (e.g. the loss)."""

    def __init__(self, total: int, name: str):
        self.total, self.name, self.text = total, name, ""
        self.bar = tqdm(total=total, desc=name) if sys.stderr.isatty() else None

    def note(self, text: str) -> None:
        self.text = text

    def __iter__(self) -> Iterator[int]:
        for i in range(self.total):
            yield i
            if self.bar is not None:
                self.bar.set_postfix_str(self.text, refresh=False)
                self.bar.update()
            elif (i + 1) * 10 // self.total > i * 10 // self.total:
                print(f"{self.name}: {i + 1}/{self.total} {self.text}", file=sys.stderr, flush=True)
        if self.bar is not None:
            self.bar.close()
