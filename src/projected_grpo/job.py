"""What every pipeline job shares: its log, its threads, one-line errors, and a clean end on a signal."""

import logging
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm

from projected_grpo.errors import UserError

log = logging.getLogger("projected_grpo")


@contextmanager
def job(log_path: str, threads: int = 1) -> Iterator[logging.Logger]:
    """Run a job's body: log to its file, set torch's threads, print a UserError as one line and exit 1.

    SIGTERM ends the body like Ctrl-C does, so that graders and temporary files are cleaned up.
    """
    handler = logging.FileHandler(log_path, mode="w", encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    signal.signal(signal.SIGTERM, _interrupt)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)
    try:
        yield log
    except UserError as error:
        log.error("%s", error)
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    except MemoryError:
        log.error("out of memory")
        print(f"error: out of memory; see {log_path}", file=sys.stderr)
        raise SystemExit(1) from None
    except BaseException as error:
        log.error("ended by %s: %s", type(error).__name__, error)
        raise
    finally:
        log.removeHandler(handler)
        handler.close()


def _interrupt(signum: int, frame: Any) -> None:
    raise KeyboardInterrupt(signal.Signals(signum).name)


def progress(items: Iterable | None, what: str, total: int | None = None) -> tqdm:
    """Return a progress bar on a terminal; without one, nothing is drawn (the log has the lines)."""
    return tqdm(items, desc=what, total=total, leave=False, disable=not sys.stderr.isatty())
