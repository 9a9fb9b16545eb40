"""Contrast pairs: what the hack basis is extracted from.

A pair set is a YAML list of `prompt`, `hack`, `clean` and optional `tags`. Its `digest` is a hash of what
extraction reads, the texts in their order, and nothing else: layout, comments and tags leave it as it is,
so they rerun nothing.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import yaml

from projected_grpo import files
from projected_grpo.errors import UserError, nearest
from projected_grpo.strict_yaml import BREAKS, parse_yaml, read_yaml
from projected_grpo.templated import is_templated

TEXTS = ("prompt", "hack", "clean")
KEYS = (*TEXTS, "tags")


@dataclass(frozen=True)
class Pair:
    """One prompt with the completion to avoid and the one to prefer.

    `prompt` is one user message, or a templated conversation if it opens with a template's token (`<|...|>`).
    """

    prompt: str
    hack: str
    clean: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class PairSet:
    """Pairs in their order; `name` is the file's."""

    name: str
    pairs: tuple[Pair, ...]

    def __len__(self) -> int:
        return len(self.pairs)

    @cached_property
    def digest(self) -> str:
        """16 hex digits over prompt, hack and clean of every pair, in order."""
        content = [[pair.prompt, pair.hack, pair.clean] for pair in self.pairs]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]

    @property
    def tags(self) -> list[str]:
        """Every tag in use, sorted."""
        return sorted({tag for pair in self.pairs for tag in pair.tags})

    def first(self, n: int) -> "PairSet":
        """The first `n` pairs. Raises UserError if the set is smaller."""
        if not 1 <= n <= len(self):
            raise UserError(f"pair set {self.name}: first {n} pairs asked for, allowed: 1 to {len(self)}")
        return PairSet(self.name, self.pairs[:n])

    def without_tag(self, tag: str) -> "PairSet":
        """The pairs that do not carry `tag`. Raises UserError if none carries it or none is left."""
        if tag not in self.tags:
            raise UserError(f"pair set {self.name}: no pair has the tag {tag!r}; {nearest(tag, self.tags)}")
        kept = tuple(pair for pair in self.pairs if tag not in pair.tags)
        if not kept:
            raise UserError(f"pair set {self.name}: every pair has the tag {tag!r}, none is left without it")
        return PairSet(self.name, kept)

    def with_tag(self, tag: str) -> "PairSet":
        """The pairs that carry `tag`. Raises UserError if none does."""
        if tag not in self.tags:
            raise UserError(f"pair set {self.name}: no pair has the tag {tag!r}; {nearest(tag, self.tags)}")
        return PairSet(self.name, tuple(pair for pair in self.pairs if tag in pair.tags))

    def select(
        self, n_pairs: int, n_heldout: int = 0, without_tag: str | None = None, with_tag: str | None = None
    ) -> "PairSet":
        """The pairs a basis is made from: filtered by tag, the first `n_pairs`, less the last `n_heldout`.

        Raises UserError where there are not that many.
        """
        pairs = self.with_tag(with_tag) if with_tag else self
        pairs = pairs.without_tag(without_tag) if without_tag else pairs
        return pairs.first(n_pairs).first(n_pairs - n_heldout)

    def used(self, knobs: dict) -> tuple["PairSet", str]:
        """The pairs that a basis with these knobs is made from, and a hash of all that it takes from this set."""
        pairs = self.select(knobs["n_pairs"], knobs["n_heldout"], knobs["without_tag"], knobs["with_tag"])
        if knobs["control"] == "random":
            return pairs, str(len(pairs))  # all that random axes take from the pairs is their number
        return pairs, f"{self.digest}-{pairs.digest}"


def load_pairs(path: str | Path) -> PairSet:
    """Read a YAML pair set. Raises UserError, one line with file, pair and key, on anything malformed."""
    return pair_set(path, read_yaml(path))


def pair_set(path: str | Path, rows: object) -> PairSet:
    """Check parsed rows (a list of mappings) and build the set named after `path`; raises UserError."""
    path = Path(path)
    if not isinstance(rows, list) or not rows:
        raise UserError(
            f"{path}: found {_kind(rows)}, allowed: a non-empty list of pairs with the keys {', '.join(KEYS)}"
        )
    pairs: list[Pair] = []
    seen: dict[tuple[str, str, str], int] = {}
    for number, row in enumerate(rows, 1):
        pair = _pair(f"{path}: pair {number}", row)
        texts = (pair.prompt, pair.hack, pair.clean)
        if texts in seen:
            raise UserError(
                f"{path}: pair {number}: prompt, hack and clean repeat pair {seen[texts]}"
                ", allowed: distinct pairs"
            )
        seen[texts] = number
        pairs.append(pair)
    return PairSet(path.stem, tuple(pairs))


def write_pairs(path: str | Path, pairs: Iterable[Pair], comment: str = "") -> None:
    """Write pairs as YAML that `load_pairs` reads back unchanged, texts as block literals; atomic.

    Raises UserError, and writes nothing, where it would not.
    """
    pairs = tuple(pairs)
    header = "".join(f"# {line}\n" for line in comment.splitlines())
    rows = []
    for pair in pairs:
        row = {"prompt": pair.prompt, "hack": pair.hack, "clean": pair.clean}
        rows.append({"tags": _Flow(pair.tags), **row} if pair.tags else row)
    body = yaml.dump(rows, Dumper=_LiteralDumper, sort_keys=False, allow_unicode=True, width=110)
    text = header + body.replace("\n- ", "\n\n- ")
    if pairs and pair_set(path, parse_yaml(path, text)).pairs != pairs:
        raise UserError(f"{path}: not written, a text holds characters that YAML would not give back")
    files.write_text(path, text)


def _pair(where: str, row: object) -> Pair:
    if not isinstance(row, dict):
        raise UserError(f"{where}: found {_kind(row)}, allowed: a mapping with the keys {', '.join(KEYS)}")
    for key in row:
        if key not in KEYS:
            raise UserError(f"{where}: unknown key {_short(key)}; {nearest(key, KEYS)}")
    for key in TEXTS:
        if key not in row:
            raise UserError(f"{where}: key '{key}' is missing; required: {', '.join(TEXTS)}")
        if not isinstance(row[key], str):
            raise UserError(f"{where}: key '{key}' is {_short(row[key])}, allowed: text (put it in quotes)")
        if not row[key].strip():
            raise UserError(f"{where}: key '{key}' is empty, allowed: text that is not blank")
        if any("\ud800" <= character <= "\udfff" for character in row[key]):
            raise UserError(
                f"{where}: key '{key}' holds half a character (a lone surrogate), allowed: whole ones"
            )
    tags = row.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) and tag.strip() for tag in tags):
        raise UserError(f"{where}: key 'tags' is {_short(tags)}, allowed: a list of words")
    # A block literal may or may not end in a newline (`|` or `|-`): that is layout, not content. Only a
    # templated prompt is taken as it stands, because generation continues right behind it.
    prompt = row["prompt"] if is_templated(row["prompt"]) else row["prompt"].rstrip("\n")
    pair = Pair(prompt, row["hack"].rstrip("\n"), row["clean"].rstrip("\n"), tuple(tags))
    if pair.hack.split() == pair.clean.split():
        but = "" if pair.hack == pair.clean else " but for blanks"
        raise UserError(f"{where}: keys 'hack' and 'clean' are the same text{but}, allowed: two that differ")
    return pair


def _kind(value: object) -> str:
    names = {type(None): "nothing", list: "an empty list" if value == [] else "a list", dict: "a mapping"}
    return names.get(type(value), _short(value))


def _short(value: object) -> str:
    """One line of at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


class _Flow(list):
    """A list written on one line."""


class _LiteralDumper(yaml.SafeDumper):
    """SafeDumper that writes texts of several lines as block literals."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    broken = any(character in text for character in BREAKS)
    style = '"' if broken else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_LiteralDumper.add_representer(str, _represent_text)
_LiteralDumper.add_representer(
    _Flow, lambda dumper, value: dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=True)
)
