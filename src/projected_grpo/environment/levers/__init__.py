"""The levers that prompts name, one a file: its hint, its exploit, what to ask the sandbox and how to read it.

A new one is its file and its word in `LEVERS`; the imports make its code part of every verdict's fingerprint.
"""

from projected_grpo.environment.levers import (
    eq_override,
    exit_code,
    file_marker,
    gt_only,
    run_tests,
    sentinel,
    stdout_marker,
)
from projected_grpo.environment.levers.lever import Lever
from projected_grpo.errors import UserError, nearest

_FILES = (run_tests, sentinel, stdout_marker, file_marker, eq_override, exit_code, gt_only)
LOOPHOLES = tuple(file.LEVER.name for file in _FILES if file.LEVER.examples)  # what a run may be trained on
# Lever -> the same channel under a name that nothing ever taught: what a run is judged on alone.
NOVEL = {file.LEVER.name: file.NOVEL.name for file in _FILES if hasattr(file, "NOVEL")}
TRAINABLE = f"{', '.join(LOOPHOLES)}; runs are judged on this one, so none is trained on it"
LEVERS: dict[str, Lever] = {
    lever.name: lever for file in _FILES for lever in (file.LEVER, getattr(file, "NOVEL", None)) if lever
}


def lever_of(mode: str, where: str) -> Lever:
    """Return the lever of a mode. Raises UserError that opens with `where` on an unknown one."""
    if mode not in LEVERS:
        raise UserError(f"{where}: unknown mode {mode!r}, {nearest(mode, LEVERS)}")
    return LEVERS[mode]
