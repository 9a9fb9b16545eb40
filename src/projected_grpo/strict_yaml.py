"""YAML read strictly: what is not plain data, or reads otherwise than it looks, ends in one line.

PyYAML follows YAML 1.1, where 041 is 33, 1:30 is 90, 1_000 is 1000 and `yes` is true; 1.2 has changed that, and readers
differ. Such words are refused: a number is written in decimals, a truth value as true or false, anything else in
quotes. No key stands twice. Aliases are counted as what they stand for, so that a page of them cannot fill the memory.
"""

import re
from pathlib import Path
from typing import Any

import yaml

from projected_grpo.errors import UserError

BREAKS = "\x85\u2028\u2029"  # YAML 1.1 ends a line there, other readers do not
MOST_NODES = 200_000
MOST_LEVELS = 100
MOST_BYTES = 20_000_000
PLAIN = {
    f"tag:yaml.org,2002:{kind}" for kind in ("map", "seq", "str", "int", "float", "bool", "null", "merge")
}
LOOKS = {
    "int": (re.compile(r"[-+]?(0|[1-9][0-9]*)"), "a number without leading zeros, _ and :"),
    "float": (re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"),
              "a number without _ and :"),
    "bool": (re.compile(r"true|True|TRUE|false|False|FALSE"), "true or false"),
}  # fmt: skip


class Refused(yaml.constructor.ConstructorError):
    """YAML, but not what this project takes."""


class StrictLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """SafeLoader of plain data that means what it looks like."""

    def get_single_node(self) -> yaml.Node | None:
        node = super().get_single_node()
        if node is not None:
            _size(node, {}, set())
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        if node.tag not in PLAIN:
            raise _wrong(
                node,
                f"{_said(node)} has the type {node.tag.rpartition(':')[2]}, allowed: plain data, or text in quotes",
            )
        kind = node.tag.rsplit(":")[-1]
        if kind in LOOKS and isinstance(node, yaml.ScalarNode):
            pattern, allowed = LOOKS[kind]
            if not pattern.fullmatch(node.value):
                value = super().construct_object(node, deep)
                means = str(value).lower() if kind == "bool" else value
                raise _wrong(
                    node, f"{_said(node)} would be read as {means}, allowed: {allowed}, or text in quotes"
                )
        return super().construct_object(node, deep)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                problem = f"the key {_said(key)} is given twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            if not isinstance(key, yaml.ScalarNode):
                raise _wrong(key, "a list or a mapping as a key, allowed: text")
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_yaml(path: str | Path) -> object:
    """Parse a YAML file. Raises UserError, one line with file and line number, where that fails."""
    try:
        if not (file := Path(path)).exists():
            raise UserError(f"{path}: no such file")
        if not file.is_file():
            raise UserError(f"{path}: not a readable text file (a folder or a device)")
        if file.stat().st_size > MOST_BYTES:
            raise UserError(f"{path}: larger than {MOST_BYTES:,} bytes")
        return parse_yaml(path, file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not a readable text file ({error})") from error


def parse_yaml(path: str | Path, text: str) -> object:
    """Parse `text`, which is or will be the file's. Raises UserError, one line with file and line number."""
    if "\ufeff" in text[1:]:  # some readers skip it, others end there
        raise UserError(f"{path}: a byte order mark within the text, allowed: at its start")
    for character in BREAKS:
        if character in text:
            line = text[: text.index(character)].count("\n") + 1
            code = f"U+{ord(character):04X}"
            raise UserError(
                f"{path}:{line}: the character {code}, which YAML takes for the end of a line, allowed: "
                f'written as "\\u{ord(character):04x}" in double quotes'
            )
    try:
        return yaml.load(text, Loader=StrictLoader)
    except Refused as error:
        raise UserError(f"{path}:{error.problem_mark.line + 1}: {error.problem}") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else f"{path}"
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise UserError(f"{where}: not YAML ({problem})") from error
    except (RecursionError, ValueError, OverflowError) as error:
        raise UserError(f"{path}: not YAML ({str(error).splitlines()[0]})") from error


def read_mapping(path: str | Path) -> dict:
    """Parse a YAML file of keys and values. Raises UserError, one line with the file, where it is none."""
    value = read_yaml(path)
    if not isinstance(value, dict):
        found = ascii(value)
        found = found if len(found) <= 60 else found[:57] + "..."
        raise UserError(f"{path}: found {found}, allowed: a mapping of settings")
    return value


def _size(node: yaml.Node, sizes: dict[int, int], above: set[int]) -> int:
    """Return how many nodes a node stands for, its aliases written out."""
    if id(node) in sizes:
        return sizes[id(node)]
    if id(node) in above:
        raise _wrong(node, "an alias that holds itself, allowed: plain data")
    if len(above) == MOST_LEVELS:
        raise _wrong(node, f"more than {MOST_LEVELS} levels")
    above.add(id(node))
    children = node.value if isinstance(node, yaml.CollectionNode) else ()
    if isinstance(node, yaml.MappingNode):
        children = [part for pair in children for part in pair]
    size = 1 + sum(_size(child, sizes, above) for child in children)
    if size > MOST_NODES:
        raise _wrong(node, f"more than {MOST_NODES} values, aliases written out")
    above.discard(id(node))
    sizes[id(node)] = size
    return size


def _said(node: yaml.Node) -> str:
    text = repr(node.value) if isinstance(node, yaml.ScalarNode) else "a collection"
    return text if len(text) <= 60 else text[:57] + "..."


def _wrong(node: yaml.Node, problem: str) -> Refused:
    return Refused(None, None, problem, node.start_mark)
