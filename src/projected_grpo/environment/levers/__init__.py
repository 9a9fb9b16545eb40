"""The levers that prompts name, one a file: its hint, its exploit, what to ask the sandbox and how to read it.

A new one is its file and its word in `_FILES`; the imports make its code part of every verdict's fingerprint. A lever
goes by several names (a function, an attribute, words, a file), each an instance: its `LEVER`, then `OTHERS`.
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
_others = {file.LEVER.name: getattr(file, "OTHERS", ()) for file in _FILES}
_novel = {file.LEVER.name: file.NOVEL for file in _FILES if hasattr(file, "NOVEL")}
# Lever -> the modes of its names that corpora and training prompts may use, its own first.
NAMES = {name: (name, *(lever.name for lever in others)) for name, others in _others.items()}
# Lever -> the same channel under names that nothing ever taught: what a run is judged on alone.
NOVEL = {name: tuple(lever.name for lever in levers) for name, levers in _novel.items()}
KIND = {mode: name for names in (NAMES, NOVEL) for name, modes in names.items() for mode in modes}
TRAINABLE = f"{', '.join(LOOPHOLES)}; runs are judged on this one, so none is trained on it"
LEVERS: dict[str, Lever] = {
    lever.name: lever
    for file in _FILES
    for lever in (file.LEVER, *_others[file.LEVER.name], *_novel.get(file.LEVER.name, ()))
}


def lever_of(mode: str, where: str) -> Lever:
    """Return the lever of a mode. Raises UserError that opens with `where` on an unknown one."""
    if mode not in LEVERS:
        raise UserError(f"{where}: unknown mode {mode!r}, {nearest(mode, LEVERS)}")
    return LEVERS[mode]
