"""The cache of facts: by (problem, mode, code), in memory and, if wanted, in a file that several processes share."""

import hashlib
import json
import logging
import os
import platform
import sqlite3
import sys
from pathlib import Path
from typing import Any

from projected_grpo.environment.problems import Problem
from projected_grpo.errors import UserError
from projected_grpo.fingerprint import fingerprint

log = logging.getLogger(__name__)

LIMIT = 20_000  # facts kept in memory
# May come out otherwise on another day: not kept in the file.
UNSURE = ("timeout", "memory", "crash", "output", "threads")


def _seal(key: bytes, text: Any) -> bytes:
    """Return 8 bytes that a damaged row does not have."""
    return hashlib.blake2b(key + str(text).encode("utf-8", "surrogatepass"), digest_size=8).digest()


class VerdictCache:
    """Keys are hashes of all that decides: the whole problem row, the mode, the code and the sandbox layer; in a file
    also the grader's own code, Python and the machine's kind. An edited problem never meets an old verdict.

    path: SQLite file, or None for memory alone; `size` entries are kept in memory, the oldest go first.
    """

    def __init__(self, path: str | os.PathLike | None = None, size: int = LIMIT):
        self.size = size
        self.memory: dict[bytes, str] = {}
        self.texts: dict[str, str] = {}  # different ones are few; each is kept once
        self.problems: dict[Any, tuple[Problem, bytes]] = {}
        self.salt = b""
        self.database: sqlite3.Connection | None = None
        if path is not None:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            # An edited grader or another Python never meets an old verdict.
            grader = Path(__file__).with_name("grade.py")
            self.salt = repr(
                (fingerprint(grader), sys.version, platform.libc_ver(), platform.machine())
            ).encode()
            try:
                self._open(path)
            except sqlite3.Error as error:
                raise UserError(f"{path}: no usable verdict cache ({error}); remove the file") from error

    def _open(self, path: str | os.PathLike) -> None:
        """Open the file; one that is damaged is a cache lost, not a run."""
        try:
            self.database = sqlite3.connect(path, timeout=60, isolation_level=None)
            self.database.execute("PRAGMA synchronous = OFF")
            self.database.execute(
                "CREATE TABLE IF NOT EXISTS facts (key BLOB PRIMARY KEY, found TEXT, seal BLOB)"
            )
        except sqlite3.OperationalError:  # locked, or no such folder: nothing to repair
            raise
        except sqlite3.DatabaseError as error:
            log.warning("%s: damaged (%s), a new verdict cache takes its place", path, error)
            self.close()
            Path(path).unlink()
            self._open(path)

    def key(self, problem: Problem, mode: str, code: str, level: str) -> bytes:
        known = self.problems.get(problem.id)
        if known is None or known[0] is not problem:
            text = repr((problem.id, problem.method, problem.setup_code, problem.tests, problem.canonical))
            known = problem, hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
            self.problems[problem.id] = known
        content = self.salt + known[1] + f"{level}\0{mode}\0".encode() + code.encode("utf-8", "surrogatepass")
        return hashlib.sha256(content).digest()[:16]

    def get(self, key: bytes) -> dict[str, Any] | None:
        """Return the facts, a fresh dict, or None."""
        text = self.memory.get(key)
        if text is None and self.database is not None:
            row = self._ask("SELECT found, seal FROM facts WHERE key = ?", (key,))
            if row is not None and row[1] == _seal(key, row[0]):  # else damaged: graded anew
                text = row[0]
                self._remember(key, text)
        return None if text is None else json.loads(text)

    def put(self, key: bytes, found: dict[str, Any]) -> None:
        text = json.dumps(found)
        self._remember(key, text)
        if self.database is not None and found["error"] not in UNSURE:
            self._ask("INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", (key, text, _seal(key, text)))

    def _ask(self, statement: str, values: tuple) -> tuple | None:
        """Run a statement and return its first row; a damaged or locked file is said once and not used again."""
        try:
            return self.database.execute(statement, values).fetchone()  # type: ignore[union-attr]
        except sqlite3.Error as error:
            log.warning("verdict cache not used any more (%s)", error)
            self.close()
            return None

    def _remember(self, key: bytes, text: str) -> None:
        if self.size < 1:
            return
        self.memory[key] = self.texts.setdefault(text, text)
        if len(self.memory) > self.size:
            del self.memory[next(iter(self.memory))]

    def close(self) -> None:
        if self.database is not None:
            self.database.close()
            self.database = None
