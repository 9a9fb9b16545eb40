"""Read the two published formats of pair sets: a JSON list and a Markdown document.

JSON: a list of objects with `prompt`, `hack`, `clean`; `problem_id` becomes a tag, other keys are left out.
Markdown: per pair a heading, an optional `Tags:` line and the headings Prompt, Hack and Clean, each followed
by one fenced block. The heading becomes the first tag.
"""

import json
import re
from pathlib import Path

from projected_grpo.errors import UserError, nearest
from projected_grpo.method.pairs import TEXTS, PairSet, pair_set

HEADING = re.compile(r"#{1,6}\s+(.*?)\s*#*\s*$")
FENCE = re.compile(r"(`{3,}|~{3,})")
FORMATS = {".json": "JSON", ".md": "Markdown"}


def import_pairs(path: str | Path) -> PairSet:
    """Read a published pair set by its suffix. Raises UserError that names file and place."""
    path = Path(path)
    if path.suffix not in FORMATS:
        raise UserError(
            f"{path}: suffix {path.suffix!r} is no published format; {nearest(path.suffix, FORMATS)}"
        )
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not a readable text file ({error})") from error
    return pair_set(path, _json_rows(path, text) if path.suffix == ".json" else _markdown_rows(path, text))


def _json_rows(path: Path, text: str) -> object:
    try:
        rows = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"{path}:{error.lineno}: not JSON ({error.msg})") from error
    if not isinstance(rows, list):
        return rows
    return [_json_row(row) if isinstance(row, dict) else row for row in rows]


def _json_row(row: dict) -> dict:
    tags = [str(row["problem_id"])] if "problem_id" in row else []
    return {key: row[key] for key in TEXTS if key in row} | {"tags": tags}


def _markdown_rows(path: Path, text: str) -> list[dict]:
    """One row per heading that has Prompt, Hack or Clean below it."""
    rows: list[dict] = []
    row: dict = {}
    section = None
    lines = enumerate(text.split("\n"), 1)
    for number, line in lines:
        heading, fence = HEADING.match(line), FENCE.match(line)
        if heading and heading[1].lower() in TEXTS:
            section = heading[1].lower()
            if section in row:
                raise UserError(f"{path}:{number}: '{section}' is given twice under one heading")
            if len(row) == 1:
                rows.append(row)
        elif heading:
            row, section = {"tags": [heading[1]]}, None
        elif fence and section:
            row[section] = _fenced(path, number, fence[1], lines)
            section = None
        elif line.lower().startswith("tags:") and row and len(row) == 1:
            row["tags"] += [tag.strip() for tag in line[5:].split(",") if tag.strip()]
    return rows


def _fenced(path: Path, start: int, fence: str, lines) -> str:
    """The block that `fence` opened, without the newline before its end."""
    block = []
    for _, line in lines:
        if line.startswith(fence) and not line.strip(fence[0] + " "):
            body = "\n".join(block)
            # The block's last newline is Markdown's, but the chat template has one after the role.
            return body + "\n" if body.endswith("<|im_start|>assistant") else body
        block.append(line)
    raise UserError(f"{path}:{start}: the fence {fence} is never closed")
