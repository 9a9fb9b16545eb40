"""YAML files laid over each other, a config's or questions': which of them says a value, in one-line errors."""

import copy
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel

from projected_grpo.digests import check_planned, of_value
from projected_grpo.errors import UserError, nearest
from projected_grpo.schema_errors import (
    MISSING,
    Keys,
    Misfit,
    children,
    get,
    key_path,
    places,
    short,
    validate,
)
from projected_grpo.strict_yaml import read_mapping, read_yaml

SHIPPED = "config/questions.yaml"

M = TypeVar("M", bound=BaseModel)


class ConfigFiles:
    """`config`: all files and the command line merged; `files`: what each of them says, later ones over earlier."""

    def __init__(self, paths: Sequence[str | Path], config: Mapping[str, Any]):
        self.config = copy.deepcopy(dict(config))
        self.files = [(_as_typed(Path(path)), read_mapping(path)) for path in paths]

    def typed(self, model: type[M], command_line: Mapping[str, Any]) -> M:
        """Return the config as a model. Raises UserError, one line, for the first mistake.

        command_line: what was typed there: words, which are the numbers or truth values that they look like wherever
        such a one is wanted.
        """
        for keys in _texts(command_line, []):
            if get(command_line, keys) == "null" == get(self.config, keys):
                self._put(keys, None)
        for keys in places(model, self.config):
            word = get(command_line, keys)
            if isinstance(word, str) and word == get(self.config, keys):
                self._put(keys, _scalar(word))
        try:
            return validate(model, self.config)
        except Misfit as error:
            self.fail(error.keys, error.problem)

    def fail(self, keys: Keys, problem: str) -> NoReturn:
        """Raise the one line: the file that holds the key, the key, the problem."""
        raise UserError(f"{self.file_of(keys)}: {key_path(keys)}: {problem}")

    def file_of(self, keys: Keys) -> str:
        """The last file that gives `keys` the value in use; `--config` where the command line gives it."""
        value = get(self.config, keys)
        if value is MISSING:  # it belongs in the first file; a module may bring a config instead
            path, layer = self.files[0]
            return path if get(layer, keys) is MISSING else "config"
        for path, layer in reversed(self.files):
            found = get(layer, keys)
            if found == value or str(found) == str(value) == "nan":  # which equals nothing, itself neither
                return path
        if isinstance(value, Mapping) and value:  # laid together from several: the last of them
            parts = {self.file_of([*keys, key]) for key in value}
            return next(
                path for path in ("--config", *(path for path, _ in reversed(self.files))) if path in parts
            )
        return "--config"

    def level(self, key: str) -> int:
        """Return the number of the first file that gives a key the value in use; the command line's is the last."""
        said = [layer.get(key, MISSING) == self.config.get(key) for _, layer in self.files]
        return [*said, True].index(True)

    def _put(self, keys: Keys, value: object) -> None:
        get(self.config, keys[:-1])[keys[-1]] = value


def _as_typed(path: Path) -> str:
    """Return the path as it would be typed here."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _texts(value: object, keys: Keys) -> list[Keys]:
    """Return the key path of every text in nested mappings and lists."""
    if isinstance(value, str):
        return [keys]
    return [path for key, item in children(value) for path in _texts(item, [*keys, key])]


def _scalar(word: str) -> object:
    """The number or truth value that a word looks like; else the word itself."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(word)
    return {"true": True, "false": False}.get(word, word)


class QuestionFiles:
    """`parsed`: what all files say. Of a question that an earlier file has, a later one adds rows and replaces keys.

    Raises UserError where a file is missing, no mapping, or not what it was when this process was planned.
    """

    def __init__(self, paths: Sequence[str | Path]):
        self.files: list[tuple[str | Path, Any]] = [(path, read_yaml(path)) for path in paths]
        self.parsed: dict[str, Any] = {}
        self.rows: dict[str, list[tuple[str | Path, int]]] = {}  # of each question, where each row stands
        for path, content in self.files:
            check_planned(path, of_value(content))
            if not isinstance(content, dict) or not content:
                raise UserError(f"{path}: {short(content)}, allowed: a non-empty mapping of questions")
            for name, entry in copy.deepcopy(content).items():
                self._lay(path, name, entry)

    def _lay(self, path: str | Path, name: str, entry: Any) -> None:
        rows = get(entry, ["rows"])
        rows = rows if isinstance(rows, list) else []
        self.rows.setdefault(name, []).extend((path, number) for number in range(len(rows)))
        before = self.parsed.get(name)
        if isinstance(before, dict) and isinstance(entry, dict):
            entry = before | entry
            if rows and isinstance(before.get("rows"), list):
                entry["rows"] = before["rows"] + rows
        self.parsed[name] = entry

    def fail(self, keys: Keys, problem: str) -> NoReturn:
        """Raise the one line on a mistake at `keys` of `parsed`: the file that says it, its key there, the problem."""
        raise UserError(f"{self.place(keys)}: {problem}")

    def place(self, keys: Keys) -> str:
        """Return `FILE: KEY` of a place in `parsed`."""
        path, own = self.where(keys)
        return f"{path}: {key_path(own)}"

    def where(self, keys: Keys) -> tuple[str, Keys]:
        """Return the file that says what stands at `keys` of `parsed`, and its keys there."""
        said: list[Any] = keys or [None]
        name, *rest = said
        if rest[:1] == ["rows"] and len(rest) > 1 and rest[1] < len(self.rows[name]):
            path, rest[1] = self.rows[name][rest[1]]
            keys = [name, *rest]
        else:
            saying = [path for path, content in self.files if keys and get(content, keys) is not MISSING]
            naming = [path for path, content in self.files if name in content]
            path = [*self.files[0][:1], *naming, *saying][-1]
        return str(path), keys

    def meant(self, keys: Keys) -> str:
        """Return what a question without a title may have been meant as: one of another file, else ""."""
        if keys[1:] != ["title"] or get(self.parsed, keys) is not MISSING:
            return ""
        others = (content for _, content in self.files if keys[0] not in content)
        if known := [name for content in others for name in content if not name.startswith("$")]:
            return f"; as more rows of a question: {nearest(str(keys[0]), known)}"
        if SHIPPED in [str(path) for path, _ in self.files]:
            return ""
        return f"; more rows of a shipped question: `questions: [{SHIPPED}, ...]`"
