"""The files and the command line that a config is merged from: who gives a value, and one line that says so."""

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from projected_grpo.cells.config import Config
from projected_grpo.errors import UserError
from projected_grpo.schema_errors import MISSING, Keys, Misfit, children, get, key_path, places, validate
from projected_grpo.strict_yaml import read_mapping


class Layers:
    """`config`: all layers merged; `files`: what each of them says, later ones over earlier."""

    def __init__(self, paths: Sequence[str | Path], config: Mapping[str, Any]):
        self.config = copy.deepcopy(dict(config))
        self.files = [(_shown(path), read_mapping(path)) for path in paths]

    def typed(self, command_line: Mapping[str, Any]) -> Config:
        """Return the config as a model. Raises UserError, one line, for the first mistake.

        command_line: what was typed there: words, which are the numbers or truth values that they look like wherever
        such a one is wanted.
        """
        for keys in _texts(command_line, []):
            if get(command_line, keys) == "null" == get(self.config, keys):
                self._put(keys, None)
        for keys in places(Config, self.config):
            word = get(command_line, keys)
            if isinstance(word, str) and word == get(self.config, keys):
                self._put(keys, _scalar(word))
        try:
            return validate(Config, self.config)
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
        return "--config"

    def level(self, key: str) -> int:
        """Return the number of the first file that gives a key the value in use; the command line's is the last."""
        said = [layer.get(key, MISSING) == self.config.get(key) for _, layer in self.files]
        return [*said, True].index(True)

    def _put(self, keys: Keys, value: object) -> None:
        get(self.config, keys[:-1])[keys[-1]] = value


def _shown(path: str | Path) -> str:
    """The path as it would be typed here."""
    path, here = Path(path), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _texts(value: object, keys: Keys) -> list[Keys]:
    """Return the key path of every text in nested mappings and lists."""
    if isinstance(value, str):
        return [keys]
    return [path for key, item in children(value) for path in _texts(item, [*keys, key])]


def _scalar(word: str) -> object:
    """The number or truth value that a word looks like; else the word itself."""
    if word in ("true", "false"):
        return word == "true"
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            pass
    return word
