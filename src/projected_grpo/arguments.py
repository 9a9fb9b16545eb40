"""What command lines say, checked where they are parsed."""

from pathlib import Path

from projected_grpo.errors import UserError


def output_file(text: str) -> Path:
    """Return the path of a file to write. Raises UserError where a folder, pipe or device has that name."""
    path = Path(text)
    if path.exists() and not path.is_file():  # found out at the end, it would cost all the work
        raise UserError(f"{path}: exists and is no regular file, allowed: a file to write")
    return path
