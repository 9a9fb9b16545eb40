"""How a command is added, and how its help is broken into lines."""

import argparse
from collections.abc import Callable
from typing import Any


class Lines(argparse.RawDescriptionHelpFormatter):
    """Wrap a description of one line to the terminal; leave an epilog, which can be pasted, in its own lines."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return super()._fill_text(text, width, indent)
        return argparse.HelpFormatter._fill_text(self, text, width, indent)


def add_command(
    commands: Any, run: Callable, name: str, help: str, about: str = "", example: str = ""
) -> argparse.ArgumentParser:
    """Add a command; its parsed arguments carry `run`, called with them. example: a text to paste."""
    parser = commands.add_parser(name, help=help, description=about, epilog=example, formatter_class=Lines)
    parser.set_defaults(run=run)
    return parser
