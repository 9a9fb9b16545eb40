"""What command lines say, checked where they are parsed."""

import difflib
import os
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from projected_grpo.errors import UserError


def output_file(text: str) -> Path:
    """Return the path of a file to write. Raises UserError where a folder, pipe or device has that name."""
    path = Path(text)
    if path.exists() and not path.is_file():  # found out at the end, it would cost all the work
        raise UserError(f"{path}: exists and is no regular file, allowed: a file to write")
    return path


def refuse_inputs(option: str, written: Path, *read: Path | None) -> None:
    """Raise UserError where the file that an option names, which is written, is one of those that are read."""
    for path in read:
        if path is None:
            continue
        linked = path.exists() and written.exists() and written.samefile(path)
        if linked or os.path.realpath(path) == os.path.realpath(written):  # which may be there later alone
            raise UserError(f"{option} {written}: is {path}, which is read; allowed: another file")


def check_numbers(args: Namespace, **least: int) -> None:
    """Check options by the least that each may be; None is none. Raises UserError that names the option."""
    for name, lowest in least.items():
        value = getattr(args, name)
        if value is not None and value < lowest:
            raise UserError(f"--{name.replace('_', '-')} {value}: allowed: {lowest} or more")


def report_file(results: str) -> str:
    """Return where the report of a results folder lies: each folder has its own, whatever its last name."""
    folder = Path(os.path.relpath(results) if os.path.isabs(results) else results)
    if folder == Path("results"):
        return "reports/paper.html"
    below = folder.relative_to("results") if folder.is_relative_to("results") else None
    # Outside of results/ names may repeat, and one below it is the default one's.
    return f"{results}/report.html" if below in (None, Path("paper")) else f"reports/{below}.html"


def check_targets(
    targets: Iterable[str],
    is_made: Callable[[str], bool],
    pages: list[str],
    rules: list[str],
    configs: Callable[[], Mapping[str, str]],
) -> None:
    """Check what shall be made. Raises UserError on a target that nothing makes, with what may be meant.

    is_made: whether a rule has this name or makes a file of this name, or one lies there; pages: the files to look at;
    rules: names that can be targets; configs: returns results folder -> file of each other config.
    """
    for target in targets:
        if not is_made(target):
            raise UserError(f"{target}: nothing makes this file{_meant(target, pages, rules, configs())}")


def _meant(target: str, pages: list[str], rules: list[str], configs: Mapping[str, str]) -> str:
    for results, config in configs.items():
        if target.startswith(f"{results}/") or target == report_file(results):
            return f" under this config; did you mean --configfile {config}?"
    candidates = {Path(page).stem: page for page in pages} | {rule: rule for rule in rules}
    stem = Path(target).stem.replace("O", "0")  # what looks alike: Q1O
    if close := difflib.get_close_matches(stem, candidates, n=1, cutoff=0.5):
        return f"; did you mean {candidates[close[0]]}?"
    return f", allowed: {', '.join([*rules, *pages])}, ..."
