"""What every pipeline job shares: its log, its threads, one-line errors, and a clean end on a signal."""

import hashlib
import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from projected_grpo.contract import Contract
from projected_grpo.errors import UserError

log = logging.getLogger("projected_grpo")


@contextmanager
def job(snakemake: Any) -> Iterator[logging.Logger]:
    """Run the body of a rule's script: log to its file, set torch's threads, print a UserError as one line and exit 1.

    The log opens with the rule, its wildcards, the seed where it has one, and a hash of all its settings. What the
    job was planned with and reads is checked first, and again at the end; its record is its last act (`Contract`).

    SIGTERM ends the body like Ctrl-C does, so that graders and temporary files are cleaned up.
    """
    log_path, threads, params = snakemake.log[0], snakemake.threads, dict(snakemake.params.items())
    handler = _log_file(log_path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    signal.signal(signal.SIGTERM, _interrupt)
    names = [f"{name} {value}" for name, value in snakemake.wildcards.items()]
    names += [f"seed {params['seed']}"] if "seed" in params else []
    digest = hashlib.sha256(repr(sorted(params.items())).encode()).hexdigest()[:12]
    log.info("rule %s", ", ".join([snakemake.rule, *names, f"settings {digest}"]))
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)
    contract = Contract(snakemake) if hasattr(snakemake, "output") else None
    try:
        if contract:
            contract.begin()
        yield log
        if contract:
            contract.end()
    except UserError as error:
        log.error("%s", error)
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    except BaseException as error:
        log.error("ended by %s: %s", type(error).__name__, error)
        if out_of_memory(error):
            print(f"error: out of memory; see {log_path}", file=sys.stderr)
            raise SystemExit(1) from None
        raise
    finally:
        log.removeHandler(handler)
        handler.close()


class _LogFile(logging.FileHandler):
    """A log whose disk may fill up: said once, and no reason to lose the work."""

    said = False

    def handleError(self, record: logging.LogRecord) -> None:
        if not self.said:
            print(f"warning: {self.baseFilename}: cannot be written ({sys.exc_info()[1]})", file=sys.stderr)
        self.said = True

    def close(self) -> None:
        with suppress(OSError):  # what it could not write it cannot write now
            super().close()


def _log_file(path: str) -> logging.Handler:
    try:
        return _LogFile(path, mode="w", encoding="utf-8")
    except OSError as error:
        print(f"error: {path}: no log can be written there ({error.strerror})", file=sys.stderr)
        raise SystemExit(1) from None


def out_of_memory(error: BaseException) -> bool:
    """Return whether `error` says so: Python's own, and torch's on CPU and GPU, which are RuntimeErrors."""
    texts = ("out of memory", "can't allocate memory")
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(text in str(error) for text in texts)
    )


def _interrupt(signum: int, frame: Any) -> None:
    raise KeyboardInterrupt(signal.Signals(signum).name)
