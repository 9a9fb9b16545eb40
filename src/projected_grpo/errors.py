"""The one exception for bad input: every entry point prints it as one line."""

import difflib
from collections.abc import Iterable

FEW = 50  # names that are all told: the keys of a row, but not all bases


class UserError(Exception):
    """Bad input from the user; the message names the file, the key and what is allowed."""


class SettingError(UserError):
    """A row's setting that the config or the row's arm has no answer to: its key, and what is wrong with it."""

    def __init__(self, key: str, problem: str):
        super().__init__(f"{key}: {problem}")
        self.key, self.problem = key, problem


def nearest(name: str, allowed: Iterable[str]) -> str:
    """Return `allowed: a, b, c; did you mean 'a'?` for an unknown name; of many names the three that are nearest."""
    allowed = [str(a) for a in allowed]
    close = difflib.get_close_matches(str(name), allowed, n=1)
    meant = f"; did you mean '{close[0]}'?" if close else ""
    if len(allowed) > FEW:
        three = difflib.get_close_matches(str(name), allowed, n=3, cutoff=0.0)
        return f"allowed: {', '.join(three)} and {len(allowed) - len(three)} more{meant}"
    return f"allowed: {', '.join(allowed)}{meant}"
