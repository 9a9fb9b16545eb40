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
from projected_grpo.templated import is_templated

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
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not a readable text file ({error})") from error
    return pair_set(path, _json_rows(path, text) if path.suffix == ".json" else _markdown_rows(path, text))


def _json_rows(path: Path, text: str) -> object:
    try:
        rows = json.loads(text, object_pairs_hook=_each_once)
    except json.JSONDecodeError as error:
        raise UserError(f"{path}:{error.lineno}: not JSON ({error.msg})") from error
    except (ValueError, RecursionError) as error:  # an integer of thousands of digits, a thousand brackets
        raise UserError(f"{path}: not JSON that can be read ({error})") from error
    if not isinstance(rows, list):
        return rows
    return [_json_row(row) if isinstance(row, dict) else row for row in rows]


def _each_once(items: list[tuple[str, object]]) -> dict:
    """Return an object's keys with their values; JSON would take the last of two that are equal."""
    row = dict(items)
    if len(row) < len(items):
        keys = [key for key, _ in items]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} is given twice")
    return row


def _json_row(row: dict) -> dict:
    tags = [str(row["problem_id"])] if row.get("problem_id") is not None else []
    return {key: row[key] for key in TEXTS if key in row} | {"tags": tags}


def _markdown_rows(path: Path, text: str) -> list[dict]:
    """One row per heading that has Prompt, Hack or Clean below it."""
    rows: list[dict] = []
    row: dict = {}
    section, level = None, ""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        heading, fence = HEADING.match(line), FENCE.match(line)
        if heading and heading[1].lower() in TEXTS:
            section, level = heading[1].lower(), line.split()[0]
            if section in row:
                raise UserError(f"{path}:{at + 1}: '{section}' is given twice under one heading")
            if len(row) == 1:
                rows.append(row)
        elif heading:
            row, section = {"tags": [heading[1]]}, None
        elif fence and section:
            end = _end(path, lines, at, fence[1], level, last=len(row) == len(TEXTS))
            body = "\n".join(lines[at + 1 : end])
            # The block's last newline is Markdown's, but the chat template has one after the role.
            row[section] = body + "\n" if is_templated(body) and body.endswith("assistant") else body
            section, at = None, end
        elif line.lower().startswith("tags:") and row and len(row) == 1:
            row["tags"] += [tag.strip() for tag in line[5:].split(",") if tag.strip()]
        at += 1
    return rows


def _end(path: Path, lines: list[str], start: int, fence: str, level: str, last: bool) -> int:
    """Return the line that closes the block opened at `start`: the first fence behind which the document goes on.

    A text may hold fences that are no longer than its own. level: the mark of its section's heading; last: the block is
    its pair's last. Raises UserError where the text cannot be told from what follows.
    """
    ends = [
        at
        for at, line in enumerate(lines)
        if at > start and line.startswith(fence) and not line.strip(fence[0] + " ")
    ]
    if not ends:
        raise UserError(f"{path}:{start + 1}: the fence {fence} is never closed")
    for end in ends:
        if any(_names_section(line, level) for line in lines[ends[0] : end]):
            break  # it is another section's
        if _goes_on(lines[end + 1 :], level, last):
            return end
    raise UserError(
        f"{path}:{ends[0] + 1}: behind this fence stands text of no section; a text that holds {fence} itself stands "
        f"between longer ones ({fence + fence[0]})"
    )


def _goes_on(rest: list[str], level: str, last: bool) -> bool:
    """Whether `rest` opens with the heading of a section, or after the last one of a pair; or holds no more."""
    behind = [line for line in rest if line.strip()]
    if not behind or _names_section(behind[0], level):
        return True
    if not last or not HEADING.match(behind[0]):
        return False
    # A comment of Python looks like a heading, but no section comes before the next fence.
    sections = (
        _names_section(line, level) for line in behind if FENCE.match(line) or _names_section(line, level)
    )
    return next(sections, True)


def _names_section(line: str, level: str) -> bool:
    heading = HEADING.match(line)
    return heading is not None and heading[1].lower() in TEXTS and line.split()[0] == level
