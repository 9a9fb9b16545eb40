"""From a completion's text to the code in it."""

import re

FENCE = re.compile(r"```python[ \t\r]*\n(.*?)(?:```|\Z)", re.S)


def extract_code(completion: str) -> str | None:
    """Return the code from the first ```` ```python ```` line to the next ```` ``` ````, or None without such a line.

    An unterminated fence runs to the end of the text.
    """
    found = FENCE.search(completion)
    return found.group(1) if found else None
