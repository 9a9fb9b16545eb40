"""The code hashes of a plan, taken from the plan before where no file of the code has another content than then.

To read every syntax tree takes a third of a plan, and the answer is the same until somebody edits the code. A job
hashes what it runs by itself, and ends where that is not what was planned.
"""

import atexit
import hashlib
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from projected_grpo.digests import of_value, one_digest
from projected_grpo.errors import UserError
from projected_grpo.files import write_json
from projected_grpo.fingerprint import ROOT, fingerprint

KEPT = Path(".snakemake") / "code.json"


class CodeHashes:
    """`fingerprint` of a workflow's scripts; scripts: their folder, kept: where the next plan finds the hashes."""

    def __init__(self, scripts: Path, kept: Path = KEPT, root: Path = ROOT):
        self.scripts, self.kept, self.root = scripts.resolve(), kept.absolute(), root.resolve()
        self.state = self._state()
        self.hashes = self._read()
        self.known = len(self.hashes)
        atexit.register(self.keep)

    def of(self, script: str, sources: Sequence[Path] = ()) -> str:
        """Return the hash of a script and of what it loads by name. Raises UserError like `fingerprint`."""
        files = [self.scripts / script, *(Path(source).resolve() for source in sources)]
        if not all(file.is_relative_to(self.root) for file in files[1:]):
            return fingerprint(*files, root=self.root)  # somebody's own file, which no state covers
        name = " ".join([script, *(os.path.relpath(file, self.root) for file in files[1:])])
        if name not in self.hashes:
            self.hashes[name] = fingerprint(*files, root=self.root)
        return self.hashes[name]

    def keep(self) -> None:
        """Write the hashes down where there are new ones and nobody edited the code meanwhile."""
        if len(self.hashes) > self.known and self._state() == self.state:
            with suppress(OSError):  # costs time alone
                write_json(self.kept, {"of": self._sealed(self.hashes), "hashes": self.hashes})

    def _state(self) -> str:
        """Return one hash of all that a fingerprint can depend on: names and contents, and how Python parses."""
        found = hashlib.sha256(sys.version.encode())
        for folder in (self.root, self.scripts):
            for file in sorted(folder.rglob("*")):
                if file.suffix != ".pyc" and file.is_file():
                    found.update(f"{file.relative_to(folder)}\0{_content(file)}\n".encode())
        return found.hexdigest()

    def _sealed(self, hashes: dict[str, str]) -> str:
        return of_value([self.state, sorted(hashes.items())])

    def _read(self) -> dict[str, str]:
        with suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
            kept = json.loads(self.kept.read_text())
            if kept["of"] == self._sealed(kept["hashes"]):
                return kept["hashes"]
        return {}


def _content(file: Path) -> str:
    try:
        return one_digest(file)
    except UserError:
        return ""  # `fingerprint` says so where it needs the file
