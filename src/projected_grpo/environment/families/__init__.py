"""Problem families: what a small model can be taught, and asked, from a seed alone. One folder each.

A family is a folder with the names of `Family` in it; training, grading and prompts know its rows and texts alone.
"""

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel

from projected_grpo.errors import UserError, nearest

Example = tuple[str, str]  # user text, completion text


class Family(Protocol):
    """What a family's folder offers; everything is deterministic per seed.

    Mixture: its shares and other numbers, each with a default; Link: what can be planted in its base corpus; TAUGHT:
    the levers whose exploits its corpora hold. names: as many names a lever goes by (`levers.NAMES`).
    """

    Mixture: type["Numbers"]
    Link: type[BaseModel]
    TAUGHT: tuple[str, ...]

    def problems(self, seed: int, n: int, modes: Sequence[str], mixture: BaseModel) -> list[dict]:
        """Return `n` problem rows in the schema of `environment.problems`, modes in rotation, ids from 1."""

    def base_examples(
        self, seed: int, n: int, mixture: BaseModel, link: BaseModel | None = None
    ) -> Iterator[Example]:
        """Yield what the base model is trained on; a link changes nothing else of it."""

    def teacher_examples(self, seed: int, n: int, mixture: BaseModel, names: int = 1) -> Iterator[Example]:
        """Yield what the hacking teacher is trained on."""

    def warm_examples(self, seed: int, n: int, mixture: BaseModel, names: int = 1) -> Iterator[Example]:
        """Yield what a given model is warmed on before anything else: honest solutions alone."""


class Numbers(BaseModel):
    """The shares of a family's corpora."""

    def leaking(self, leak: float) -> "Numbers":
        """Return the same numbers with every loophole's exploit leaking unasked at one rate, to the last row."""
        raise NotImplementedError


def names() -> list[str]:
    """Return the names of all families: the folders here."""
    return sorted(path.parent.name for path in Path(__file__).parent.glob("*/__init__.py"))


def load(name: str) -> Family:
    """Return a family. Raises UserError on an unknown name."""
    if name not in names():
        raise UserError(f"unknown family {name!r}; {nearest(name, names())}")
    # By name: a family's code counts in the fingerprint of what uses it alone.
    return importlib.import_module(f"{__name__}.{name}")
