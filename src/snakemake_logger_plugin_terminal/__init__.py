"""Snakemake's terminal as people who wait for it want it: one line a job, with step, rate and time left.

On a terminal the running jobs are bars below the lines of what is done; elsewhere a line says now and then how far they
are. How far a job is stands in its log, whose last `12/20` is read. A dry run has a line a rule and reason. Snakemake's
own full text is in `.snakemake/log`. `./snakemake` loads this unless the call asks for Snakemake's own words.
"""

import re
import textwrap
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from logging import LogRecord
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column
from snakemake.logging import get_event
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

STEP = re.compile(r"\b(\d+)/(\d+)\b")
LOOK, SAY = 0.5, 60.0  # seconds between looks at the logs, and between lines about jobs off a terminal
TAIL = 4096  # bytes of a log that are looked at
# What Snakemake says of itself, around the jobs.
CHATTER = (
    "Assuming unrestricted", "Building DAG", "Using shell", "Provided cores", "Provided resources", "Rules claiming",
    "Select jobs", "Execute ", "Complete log", "Job stats", "host:", "Shutting down", "Exiting because", "Singularity",
    "Conda environments: ignored", "Elapsed time", "Will exit after", "Using workflow specific profile",
    "Config file ", "Reasons:", "This was a dry-run", "(check individual jobs",
)  # fmt: skip
METADATA = "have missing provenance/metadata"  # of Snakemake's own; here records say what was made from what
QUIET = (
    *(LogEvent.SHELLCMD, LogEvent.WORKFLOW_STARTED, LogEvent.RESOURCES_INFO, LogEvent.RULEGRAPH),
    LogEvent.JOB_STARTED,  # it was announced the moment before
)
STOPPING = "Terminating processes on user request"
# Why a dry run would make a job: part of Snakemake's reason -> what is said of it; the first that is in it counts.
WHY = {
    "changed/code": "its code changed",
    "changed/settings": "its settings changed",
    "changed/inputs": "an input changed",
    "changed/record": "its record is missing or damaged",
    "Missing output": "not there yet",
    "updated by another job": "an input is made anew",
}


@dataclass
class Job:
    """A job that runs: its name, the log that it writes, when it began, its bar."""

    name: str
    log: Path | None
    began: float
    bar: int | None = None
    first: tuple[float, int] | None = None  # when the first step of this stretch was seen, and which
    last: tuple[int, int] = (0, 0)  # the last step seen, and of how many


def reached(log: Path | None) -> tuple[int, int] | None:
    """Return (k, n) of the last `k/n` in a log; None where there is none yet."""
    try:
        with open(log, "rb") as file:
            file.seek(max(0, file.seek(0, 2) - TAIL))
            found = STEP.findall(file.read().decode("utf-8", "replace"))
    except (OSError, TypeError):
        return None
    return (int(found[-1][0]), int(found[-1][1])) if found else None


def duration(seconds: float) -> str:
    """Return a time as people say it: 45 s, 12 min, 3 h 05 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def left(job: Job, k: int, n: int) -> str:
    """Return how far a job is: step, rate and, as far as that holds, the time left.

    Starting up is no step: the rate counts from the first step that was seen. A job that counts anew, as the critic's
    rounds do, begins another stretch.
    """
    now = time.monotonic()
    if job.first is None or k < job.last[0] or n != job.last[1]:
        job.first = (now, k)
    job.last = (k, n)
    since, steps = now - job.first[0], k - job.first[1]
    if not steps:
        return f"{k}/{n}"
    rate = f"{steps / since:.1f}/s" if steps > since else f"{since / steps:.1f} s each"
    return f"{k}/{n}, {rate}, {duration(since / steps * (n - k))} left"


class LogHandler(LogHandlerBase):
    """Lines and bars on standard error."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = True
    needs_rulegraph = False

    def __post_init__(self) -> None:
        self.console = Console(stderr=not self.common_settings.stdout, highlight=False)
        self.running: dict[int, Job] = {}
        self.done, self.total, self.began = 0, 0, time.monotonic()
        self.dry: dict[tuple[str, str], list[str]] = {}  # of a dry run: (rule, why) -> its jobs
        self.stopped = False  # by the user: how jobs end from then on is no news
        whole = Column(no_wrap=True)
        name, at = (
            TextColumn(f"{{task.{field}}}", table_column=whole) for field in ("description", "fields[at]")
        )
        columns = name, BarColumn(20), at, TimeElapsedColumn()
        self.bars = Progress(*columns, console=self.console, transient=True)
        self.over = threading.Event()
        self.watch = threading.Thread(target=self._watch, daemon=True)
        self.watch.start()

    # --- what Snakemake says ---

    def emit(self, record: LogRecord) -> None:
        event = get_event(record)
        said = {
            LogEvent.JOB_INFO: self._announced,
            LogEvent.JOB_FINISHED: lambda r: self._ended(r.job_id, "done"),
            LogEvent.JOB_ERROR: self._failed,
            LogEvent.PROGRESS: self._progress,
            LogEvent.RUN_INFO: self._planned,
        }
        try:
            if event in said:
                said[event](record)
            elif event not in QUIET and (text := record.getMessage().strip()):
                self._other(text, record.levelname in ("ERROR", "CRITICAL"))
        except Exception:
            self.handleError(record)

    def _say(self, text: str, style: str | None = None) -> None:
        """Print a text, on a terminal with its lines broken between words: a path stays whole, to be copied."""
        if self.console.is_terminal:
            how = {"break_long_words": False, "break_on_hyphens": False}
            text = "\n".join(textwrap.fill(line, self.console.width, **how) for line in text.split("\n"))
        self.console.print(escape(text), style=style, soft_wrap=True)

    def _other(self, text: str, is_error: bool) -> None:
        if text.startswith(STOPPING):
            self.stopped = True
        chatter = text.startswith(CHATTER) or METADATA in text
        if not chatter and not (self.stopped and is_error):
            self._say(text, "red" if is_error else None)

    def _planned(self, record: LogRecord) -> None:
        if self.dry:
            return self._would_make()  # a dry run says its plan again at its end
        self.total = int(record.stats.get("total", 0))
        if self.total:
            jobs = ", ".join(f"{n} {rule}" for rule, n in record.stats.items() if rule != "total")
            self._say(f"{self.total} jobs: {jobs}")

    def _would_make(self) -> None:
        from projected_grpo.pages.words import short

        for (rule, why), names in self.dry.items():
            jobs = f": {', '.join(sorted(short(names)))}" if any(names) else ""
            self._say(f"  {len(names)} {rule}, {why}{jobs}")

    def _announced(self, record: LogRecord) -> None:
        if self.common_settings.dryrun:
            known = (said for part, said in WHY.items() if part in record.reason)
            why = next(known, record.reason.split(":")[0])
            # The model comes last.
            of = sorted(map(str, record.wildcards.values()), key=lambda word: "-s" in word)
            self.dry.setdefault((record.rule_name, why), []).append(" ".join(of))
            return
        named = " ".join([record.rule_name, *map(str, record.wildcards.values())])
        log = Path(str(record.log[0]).split(" ")[0]) if record.log else None
        job = self.running[record.jobid] = Job(named, log, time.monotonic())
        if self.console.is_terminal:
            self.bars.start()
            job.bar = self.bars.add_task(escape(named), total=None, at="")

    def _progress(self, record: LogRecord) -> None:
        self.done, self.total = record.done, record.total

    def _failed(self, record: LogRecord) -> None:
        self._ended(record.jobid, "stopped" if self.stopped else "FAILED")
        if self.stopped:
            return
        self._say(f"    log: {', '.join(map(str, record.log))}", "red")
        for log in record.log if self.common_settings.show_failed_logs else ():
            with suppress(OSError):
                for line in Path(log).read_text(encoding="utf-8", errors="replace").splitlines()[-10:]:
                    self._say(f"    {line}")

    def _ended(self, jobid: int, how: str) -> None:
        job = self.running.pop(jobid, None)
        if job is None:
            return
        if job.bar is not None:
            self.bars.remove_task(job.bar)
        if how == "done":
            self.done += 1
        took = duration(time.monotonic() - job.began)
        self._say(f"{self.done}/{self.total} {job.name} {how} in {took}", "red" if how == "FAILED" else None)

    # --- how far jobs are ---

    def _watch(self) -> None:
        said = time.monotonic()
        while not self.over.wait(LOOK):
            if self.console.is_terminal:
                for job in list(self.running.values()):
                    if (found := reached(job.log)) and job.bar is not None:
                        with suppress(KeyError):  # it has ended meanwhile, and its bar is gone
                            k, n = found
                            self.bars.update(job.bar, completed=k, total=n, at=left(job, k, n))
            elif time.monotonic() - said > SAY:
                said = time.monotonic()
                for job in list(self.running.values()):
                    found = reached(job.log)
                    at = left(job, *found) if found else duration(said - job.began)
                    self._say(f"  running: {job.name}, {at}")

    def close(self) -> None:
        self.over.set()
        if self.bars.live.is_started:
            self.bars.stop()
        super().close()
