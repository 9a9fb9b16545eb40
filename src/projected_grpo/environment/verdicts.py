"""The verdict cache: by (problem, mode, code), in memory and, if wanted, in a file that several processes share."""

import hashlib
import json
import os
import sqlite3
from collections import OrderedDict
from pathlib import Path
from typing import Any

from projected_grpo.environment.problems import Problem
from projected_grpo.errors import UserError

LIMIT = 100_000  # verdicts kept in memory
UNSURE = ("timeout", "memory", "crash")  # may come out otherwise on another day: not kept in the file


class VerdictCache:
    """Keys are hashes of the whole problem row, the mode and the code: an edited problem never meets an old verdict."""

    def __init__(self, path: str | os.PathLike | None = None):
        self.memory: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self.problems: dict[Any, bytes] = {}
        self.database: sqlite3.Connection | None = None
        if path is not None:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            try:
                self.database = sqlite3.connect(path, timeout=60, isolation_level=None)
                self.database.execute("PRAGMA synchronous = OFF")
                self.database.execute(
                    "CREATE TABLE IF NOT EXISTS verdicts (key TEXT PRIMARY KEY, verdict TEXT)"
                )
            except sqlite3.Error as error:
                raise UserError(f"{path}: no usable verdict cache ({error}); remove the file") from error

    def key(self, problem: Problem, mode: str, code: str) -> str:
        digest = self.problems.get(problem.id)
        if digest is None:
            text = repr((problem.id, problem.method, problem.setup_code, problem.tests, problem.canonical))
            digest = self.problems[problem.id] = hashlib.sha256(
                text.encode("utf-8", "surrogatepass")
            ).digest()
        content = digest + mode.encode() + b"\0" + code.encode("utf-8", "surrogatepass")
        return hashlib.sha256(content).hexdigest()

    def get(self, key: str) -> dict[str, Any] | None:
        found = self.memory.get(key)
        if found is None and self.database is not None:
            row = self.database.execute("SELECT verdict FROM verdicts WHERE key = ?", (key,)).fetchone()
            if row is not None:
                found = json.loads(row[0])
                self._remember(key, found)
        return None if found is None else dict(found)

    def put(self, key: str, verdict: dict[str, Any]) -> None:
        self._remember(key, verdict)
        if self.database is not None and verdict["error"] not in UNSURE:
            self.database.execute("INSERT OR IGNORE INTO verdicts VALUES (?, ?)", (key, json.dumps(verdict)))

    def _remember(self, key: str, verdict: dict[str, Any]) -> None:
        self.memory[key] = dict(verdict)
        if len(self.memory) > LIMIT:
            self.memory.popitem(last=False)

    def close(self) -> None:
        if self.database is not None:
            self.database.close()
            self.database = None
