"""JSON-lines rows with their line numbers, for messages that lead to the line."""

import gzip
import json
import os
from collections.abc import Iterator
from typing import Any

from projected_grpo.errors import UserError


def numbered_rows(path: str | os.PathLike) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (`path:line`, object) of a JSON-lines file (`.gz` by suffix), blank lines left out.

    Raises UserError that names file, line and reason on anything else than one object a line.
    """
    opener = gzip.open if str(path).endswith(".gz") else open
    number = 0
    try:
        with opener(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                row = json.loads(line.removeprefix(b"\xef\xbb\xbf"))
                if not isinstance(row, dict):
                    raise UserError(f"{path}:{number}: expected a JSON object, found {type(row).__name__}")
                yield f"{path}:{number}", row
    except OSError as error:
        if isinstance(error, gzip.BadGzipFile):
            raise UserError(f"{path}:{number + 1}: damaged gzip file ({error})") from error
        raise UserError(f"{path}: cannot be read ({error.strerror})") from error
    except EOFError as error:
        raise UserError(f"{path}:{number + 1}: damaged gzip file ({error})") from error
    except RecursionError as error:
        raise UserError(f"{path}:{number}: nested too deeply") from error
    except ValueError as error:
        raise UserError(f"{path}:{number}: not JSON ({error})") from error
