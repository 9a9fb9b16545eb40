"""Config files by name: whether one is there, and what else could have been meant."""

import json
from contextlib import suppress
from pathlib import Path

from projected_grpo.errors import UserError, nearest
from projected_grpo.strict_yaml import read_mapping


def check_there(file: str | Path) -> None:
    """Raise UserError, with the nearest config file of the repository, where a file is not there."""
    if not Path(file).exists():
        there = [str(path) for path in sorted(Path("config").glob("*.y*ml")) if can_be_config(path)]
        raise UserError(f"{file}: no such config file; {nearest(str(file), there)}")


def can_be_config(path: Path) -> bool:
    """Return whether a file holds keys of a config and no others, as the schema for editors has them."""
    known = json.loads(Path("workflow/schemas/config.schema.json").read_text())["properties"]
    with suppress(UserError):
        return read_mapping(path).keys() <= known.keys()
    return False
