"""What the evaluator asks of a language model: two methods, one answer type, one count of what it cost."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol


class NoStructuredOutput(Exception):
    """The backend cannot keep to a JSON schema: ask it for free text."""


@dataclass(frozen=True)
class Reply:
    """An answer's text, or why there is none.

    `problem` is empty or one word (`refusal`, `truncated`, `timeout`, ...); `again` says that asking later
    may help (the request failed, not the model).
    """

    text: str
    problem: str = ""
    again: bool = False


class Backend(Protocol):
    """A language model. `name` goes into the cards; it never holds a key."""

    name: str
    usage: "Usage"

    def generate(self, prompts: Sequence[str], temperature: float, seed: int) -> Iterator[Reply]:
        """One reply per prompt, in the order of the prompts, each as soon as it and those before it are
        there.
        """

    def generate_structured(
        self, prompts: Sequence[str], schema: dict, temperature: float, seed: int
    ) -> Iterator[Reply]:
        """As `generate`, asking for a JSON object of `schema`. Raises NoStructuredOutput before the first
        reply.
        """


def ask(
    backend: Backend, prompts: Sequence[str], schema: dict, temperature: float, seed: int
) -> Iterator[Reply]:
    """One reply per prompt: an object of `schema` where the backend has structured output, else free text."""
    try:
        yield from backend.generate_structured(prompts, schema, temperature, seed)
    except NoStructuredOutput:
        yield from backend.generate(prompts, temperature, seed)


@dataclass
class Usage:
    """Calls and tokens of a run; prices are per million tokens, in whatever currency the user thinks in."""

    price_in: float | None = None
    price_out: float | None = None
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, tokens_in: int, tokens_out: int) -> None:
        """Count one answered call."""
        with self._lock:
            self.calls += 1
            self.tokens_in += tokens_in
            self.tokens_out += tokens_out

    def resume(self, counts: dict[str, int]) -> None:
        """Go on counting from these `counts` of a run that was interrupted."""
        for name, n in counts.items():
            setattr(self, name, n)

    def counts(self) -> dict[str, int]:
        """The counts alone, as the memory keeps them."""
        with self._lock:
            return {"calls": self.calls, "tokens_in": self.tokens_in, "tokens_out": self.tokens_out}

    def to_dict(self) -> dict:
        """Counts and the cost; the cost is null where no price is known."""
        cost = None
        if self.price_in is not None and self.price_out is not None:
            cost = (self.tokens_in * self.price_in + self.tokens_out * self.price_out) / 1e6
        return {**self.counts(), "cost": cost}
