"""How a command is added, with its help in lines that fit the terminal."""

import argparse
import shutil
import textwrap
from collections.abc import Callable
from typing import Any


def add_command(
    commands: Any, run: Callable, name: str, help: str, about: str = "", example: str = ""
) -> argparse.ArgumentParser:
    """Add a command; its parsed arguments carry `run`, called with them. example: a text to paste."""
    wrapped = textwrap.fill(about, max(shutil.get_terminal_size().columns - 2, 20))
    lines = argparse.RawDescriptionHelpFormatter  # an example can be pasted as it stands
    parser = commands.add_parser(name, help=help, description=wrapped, epilog=example, formatter_class=lines)
    parser.set_defaults(run=run)
    return parser
