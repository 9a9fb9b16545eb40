"""The questions of one file, or of several laid over each other: a later one adds rows and questions of its own."""

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from projected_grpo.digests import check_planned, of_value
from projected_grpo.errors import UserError
from projected_grpo.schema_errors import MISSING, Keys, get, key_path, short
from projected_grpo.strict_yaml import read_yaml


def read_questions(paths: Sequence[str | Path]) -> dict[str, Any]:
    """Return the questions that these files say together. Raises UserError like `QuestionFiles`."""
    return QuestionFiles(paths).parsed


class QuestionFiles:
    """`parsed`: what all files say. Of a question that an earlier file has, a later one adds rows and replaces keys.

    Raises UserError where a file is missing, no mapping, or not what it was when this process was planned.
    """

    def __init__(self, paths: Sequence[str | Path]):
        self.files = [(path, read_yaml(path)) for path in paths]
        self.parsed: dict[str, Any] = {}
        self.rows: dict[str, list[tuple[str | Path, int]]] = {}  # of each question, where each row stands
        for path, content in self.files:
            check_planned(path, of_value(content))
            if not isinstance(content, dict) or not content:
                raise UserError(f"{path}: {short(content)}, allowed: a non-empty mapping of questions")
            for name, entry in copy.deepcopy(content).items():
                self._lay(path, name, entry)

    def _lay(self, path: str | Path, name: str, entry: Any) -> None:
        rows = entry.get("rows") if isinstance(entry, dict) else None
        rows = rows if isinstance(rows, list) else []
        self.rows.setdefault(name, []).extend((path, number) for number in range(len(rows)))
        before = self.parsed.get(name)
        if isinstance(before, dict) and isinstance(entry, dict):
            entry = before | entry
            if rows and isinstance(before.get("rows"), list):
                entry["rows"] = before["rows"] + rows
        self.parsed[name] = entry

    def line(self, keys: Keys, problem: str) -> str:
        """Return the one line on a mistake at `keys` of `parsed`: the file that says it, its key there, the problem."""
        name, *rest = keys or [None]
        if rest[:1] == ["rows"] and len(rest) > 1 and rest[1] < len(self.rows[name]):
            path, number = self.rows[name][rest[1]]
            return f"{path}: {key_path([name, 'rows', number, *rest[2:]])}: {problem}"
        saying = [path for path, content in self.files if keys and get(content, keys) is not MISSING]
        naming = [path for path, content in self.files if name in content]
        path = [*self.files[0][:1], *naming, *saying][-1]
        return f"{path}: {key_path(keys)}: {problem}"
