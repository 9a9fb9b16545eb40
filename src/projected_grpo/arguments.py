"""What command lines say, checked where they are parsed."""

import difflib
from collections.abc import Callable, Iterable
from pathlib import Path

from projected_grpo.errors import UserError


def output_file(text: str) -> Path:
    """Return the path of a file to write. Raises UserError where a folder, pipe or device has that name."""
    path = Path(text)
    if path.exists() and not path.is_file():  # found out at the end, it would cost all the work
        raise UserError(f"{path}: exists and is no regular file, allowed: a file to write")
    return path


def check_targets(targets: Iterable[str], is_made: Callable[[str], bool], pages: Iterable[str]) -> None:
    """Check what shall be made. Raises UserError on a target that nothing makes, with the page that may be meant.

    is_made: whether a rule has this name or makes a file of this name, or one lies there; pages: the files to look at.
    """
    pages = list(pages)
    for target in targets:
        if is_made(target):
            continue
        by_stem = {Path(page).stem: page for page in pages}
        stem = Path(target).stem.replace("O", "0")  # what looks alike: Q1O
        close = difflib.get_close_matches(stem, by_stem, n=1, cutoff=0.5)
        meant = f"; did you mean {by_stem[close[0]]}?" if close else f", allowed: {', '.join(pages)}, ..."
        raise UserError(f"{target}: nothing makes this file{meant}")
