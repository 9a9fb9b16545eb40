"""What the evaluator asks of a language model: one method, one answer type, one count of what it cost."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from projected_grpo.errors import UserError

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
    """Calls and tokens of a run, those of interrupted jobs included."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    def add(self, tokens_in: int, tokens_out: int) -> None:
        """Count one answered call."""
        self.calls += 1
        self.tokens_in += tokens_in
        self.tokens_out += tokens_out


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
    url = os.environ.get("OPENAI_BASE_URL", OPENAI)
    try:
        host = urlsplit(url).netloc.rpartition("@")[2]
    except ValueError as error:
        raise UserError(f"self_taught: OPENAI_BASE_URL = {url!r} is no address ({error})") from None
    return model or os.environ.get("OPENAI_MODEL", ""), host
