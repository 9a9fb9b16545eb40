"""The one exception for bad input: every entry point prints it as one line."""

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Bad input from the user; the message names the file, the key and what is allowed."""


class SettingError(UserError):
    """A row's setting that the config or the row's arm has no answer to: its key, and what is wrong with it."""

    def __init__(self, key: str, problem: str):
        super().__init__(f"{key}: {problem}")
        self.key, self.problem = key, problem


def nearest(name: str, allowed: Iterable[str]) -> str:
    """Return `allowed: a, b, c; did you mean 'a'?` for an unknown name."""
    allowed = [str(a) for a in allowed]
    close = difflib.get_close_matches(str(name), allowed, n=1)
    return "allowed: " + ", ".join(allowed) + (f"; did you mean '{close[0]}'?" if close else "")
