"""A job runs what was planned, on what was made, or ends with one line: the checks around a job's body, its record.

Planned are the code and the pair set, whose hashes are among the job's params. What Python has loaded when a job
begins is settled there and then; a file that is loaded or read later, and was written meanwhile, ends the job too,
whatever it says by then.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from projected_grpo import digests, records
from projected_grpo.errors import UserError
from projected_grpo.fingerprint import closure, fingerprint
from projected_grpo.hub import local_folder
from projected_grpo.plan import MARKS

AGAIN = "type the same command again"


class Contract:
    """The checks of one job; `begin` before its body, `end` after it."""

    def __init__(self, snakemake: Any):
        self.rule, self.wildcards = snakemake.rule, dict(snakemake.wildcards.items())
        self.results, self.existing = str(snakemake.config["results"]), snakemake.config["runs"] == "existing"
        self.settings = dict(snakemake.params.items())
        self.code = self.settings.pop("code", None)
        script = Path(sys.modules["__main__"].__file__)  # type: ignore[arg-type]
        # Where they lie decides nothing: what they hold is in the code hash.
        self.sources = [script, *(script.parents[2] / source for source in self.settings.pop("sources", []))]
        self.inputs = [path for path in map(str, snakemake.input) if Path(path).parent != MARKS]
        self.outputs = [str(path) for path in snakemake.output]
        self.loaded: set[str | None]
        self.given: dict[str, Any]
        self.versions: dict[str, Any]
        self.begun, self.loaded, self.given, self.versions = time.time(), set(), {}, {}

    def begin(self) -> None:
        """Take the old record away, then check code and inputs. Raises UserError."""
        path: Any  # of a record, then of an input
        for path in records.record_paths(self.outputs, self.results):
            path.unlink(missing_ok=True)
        self.check_code(started(), set())
        self.loaded = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
        pairs = self.settings.get("pairs_digest")
        if pairs:
            digests.expect(self.settings["pairs"], pairs)
        for path in self.inputs:
            self.versions[path] = version(path)
            self.given[path] = records.check(path, self.results)
        if not self.existing:
            self.check_origins()

    def check_code(self, since: float, settled: set[str | None]) -> None:
        """Raise UserError where the code is not what was planned, or was written after `since` and is not settled."""
        if self.code is None:
            return
        files = self.hashed()
        newest = max(files, key=lambda file: file.stat().st_mtime_ns)
        times = {file: file.stat().st_ctime for file in sorted(files)}
        now = time.time() + 1  # a later time was given before the clock was set back
        late = [file for file, at in times.items() if since < at < now and str(file) not in settled]
        if late or fingerprint(*self.sources) != self.code:
            raise UserError(
                f"{os.path.relpath(late[0] if late else newest)}: changed while this job ran; {AGAIN}"
            )

    def hashed(self) -> set[Path]:
        """Return the files whose content is in the code hash."""
        return {file for source in self.sources for file in closure(source.resolve())}

    def check_loaded(self) -> None:
        """Raise UserError where a module of this package was loaded that the code hash does not cover.

        A page loads arms and problem families by name to read config and questions; what it takes from them stands in
        its own setting `asks`.
        """
        if self.code is None:
            return
        package, covered = __name__.split(".")[0], self.hashed()
        by_name = (f"{package}.arms.", f"{package}.environment.families.") if "asks" in self.settings else ()
        loaded = {
            name: Path(module.__file__).resolve()  # type: ignore[arg-type]
            for name, module in sorted(sys.modules.items())
            if name.split(".")[0] == package and getattr(module, "__file__", None)
        }
        for name, file in loaded.items():
            covered |= closure(file) if name.startswith(by_name) else set()
        for file in loaded.values():
            if file not in covered:
                raise UserError(
                    f"{os.path.relpath(file)}: rule {self.rule} ran it, and an edit of it would rerun nothing; "
                    "allowed: files that the rule's script imports or names in `sources`"
                )

    def check_origins(self) -> None:
        """Raise UserError where one input was made from another version of a file than the next, or than there is."""
        seen = {records.relative(path, self.results): digest for path, digest in self.given.items()}
        for path in self.inputs:
            record = records.find(path, self.results)
            for name, digest in record["inputs"] if record else []:
                if seen.setdefault(name, digest) != digest:
                    file = os.path.normpath(os.path.join(self.results, name))
                    raise UserError(f"{path}: made from another {file} than this job's inputs; {AGAIN}")

    def add_fetched(self) -> None:
        """Add the checkpoints that the body fetched from the hub, which the plan could not know."""
        for key, marker in (("teacher", "adapter_config.json"), ("base", "config.json")):  # base stands first
            name = self.settings.get(key)
            if isinstance(name, str) and not os.path.isdir(name):
                local_folder.cache_clear()
                folder = local_folder(name, marker)
                if folder and str(folder / marker) not in self.given:
                    path = str(folder / marker)
                    self.given = {path: digests.file_digest(path), **self.given}

    def end(self) -> None:
        """Check once more that nothing changed meanwhile, then write the record. Raises UserError."""
        self.check_code(self.begun, self.loaded)
        self.check_loaded()
        for path, before in self.versions.items():
            if version(path) != before and digests.file_digest(path) != self.given[path]:
                raise UserError(f"{path}: changed while this job ran; {AGAIN}")
        self.add_fetched()
        record = {
            "rule": self.rule,
            "wildcards": self.wildcards,
            "code": self.code,
            "settings": json.loads(records.canonical(self.settings, self.results)),
            "inputs": [[records.relative(path, self.results), digest] for path, digest in self.given.items()],
            **records.circumstances(),
            "seconds": round(time.time() - self.begun, 1),
        }
        records.write(record, self.outputs, self.results)


def version(path: str) -> list[tuple[int, int, int]]:
    """Return size, time and inode of everything that `path` stands for: equal while nobody writes it."""
    stats = [part.stat() for part in digests.parts(Path(path)) if part.exists()]
    return [(stat.st_size, stat.st_mtime_ns, stat.st_ino) for stat in stats]


def started() -> float:
    """Return when this process started."""
    ticks = Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[19]
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - int(ticks) / os.sysconf("SC_CLK_TCK")
    return time.time() - age
