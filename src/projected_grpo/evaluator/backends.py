"""What the evaluator asks of a language model: one method, one answer type, one count of what it cost."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

OPENAI = "https://api.openai.com/v1"  # where the official client goes when nothing else is said


@dataclass(frozen=True)
class Reply:
    """An answer's text, or why there is none.

    `problem` is empty or one word (`refusal`, `truncated`, `timeout`, ...); `again` says that asking later
    may help (the request failed, not the model).
    """

    text: str
    problem: str = ""
    again: bool = False


@dataclass
class Usage:
    """Calls and tokens of a run; prices are per million tokens, in whatever currency the user thinks in."""

    price_in: float | None = None
    price_out: float | None = None
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    def add(self, tokens_in: int, tokens_out: int) -> None:
        """Count one answered call."""
        self.calls += 1
        self.tokens_in += tokens_in
        self.tokens_out += tokens_out

    def counts(self) -> dict[str, int]:
        """The counts alone, as the memory keeps them."""
        return {"calls": self.calls, "tokens_in": self.tokens_in, "tokens_out": self.tokens_out}

    def resume(self, counts: dict[str, int]) -> None:
        """Go on counting from these `counts` of a run that was interrupted."""
        vars(self).update(counts)

    def to_dict(self) -> dict:
        """Counts and the cost; the cost is null where no price is known."""
        known = None not in (self.price_in, self.price_out)
        cost = (self.tokens_in * self.price_in + self.tokens_out * self.price_out) / 1e6 if known else None
        return {**self.counts(), "cost": cost}


class Backend(Protocol):
    """A language model. `name` goes into the cards; it never holds a key."""

    name: str
    usage: Usage

    def answer(self, prompts: Sequence[str], schema: dict, temperature: float, seed: int) -> Iterator[Reply]:
        """One reply per prompt, in their order, each as soon as it and those before it are there.

        A JSON object of `schema` is asked for where the backend has structured output, else free text.
        """


def endpoint(model: str | None = None) -> tuple[str, str]:
    """(model, host with port) that a server critic asks; the model is `model` or OPENAI_MODEL, empty without both.

    Known before any request, and never the key: the host is OPENAI_BASE_URL's, without user, password or path.
    """
    host = urlsplit(os.environ.get("OPENAI_BASE_URL", OPENAI)).netloc.rpartition("@")[2]
    return model or os.environ.get("OPENAI_MODEL", ""), host
