"""How the help of commands is broken into lines."""

import argparse


class Lines(argparse.RawDescriptionHelpFormatter):
    """Wrap a description of one line to the terminal; leave an epilog, which can be pasted, in its own lines."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return super()._fill_text(text, width, indent)
        return argparse.HelpFormatter._fill_text(self, text, width, indent)
