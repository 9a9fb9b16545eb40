"""The JSON schemas for editors and the reference of the config, both written from the models.

projected-grpo schemas: write workflow/schemas/*.schema.json and docs/config.md.
projected-grpo schemas CONFIG: write the questions' schema with the arms that CONFIG names beside it.
"""

import argparse
import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, RootModel, StringConstraints, create_model

from projected_grpo import arms, files
from projected_grpo.cells.config import Config
from projected_grpo.cells.questions import QUESTION, Heading, Question, Questions
from projected_grpo.cells.row_setting import ROW
from projected_grpo.cells.setting import Setting
from projected_grpo.cells.typed import Model, Text
from projected_grpo.commands.help import add_command
from projected_grpo.errors import UserError
from projected_grpo.schema_errors import WORDS, describe, json_schema, resolved, short
from projected_grpo.strict_yaml import read_mapping, read_yaml

ROOT = Path(__file__).resolve().parents[3]
TEXT = r"\S"
WORDS[TEXT] = "text that is not blank"
Words = Annotated[str, StringConstraints(pattern=TEXT)]


class PairRow(Model):
    """One contrast pair."""

    prompt: Words = Field(
        description="One user message, or a templated conversation that opens with a token of its template (`<|...|>`)."
    )
    hack: Words = Field(description="The completion to move away from.")
    clean: Words = Field(description="The completion to prefer; differs from hack.")
    tags: tuple[Text, ...] = Field(
        default=(), description="Words for filters (without_tag); not part of the set's digest."
    )


class PairRows(RootModel[Annotated[tuple[PairRow, ...], Field(min_length=1)]]):
    """Contrast pairs that a hack basis is extracted from."""


def _knobs() -> dict[str, Any]:
    """The knobs of all arms by name; of several types the schema takes any value, and the check asks the row's arm."""
    fields: dict[str, list] = {}
    for arm in arms.names():
        for key, field in arms.load(arm).Knobs.model_fields.items():
            fields.setdefault(key, []).append((arm, field))
    found = {}
    for key, of_arms in fields.items():
        names, (field, *others) = ", ".join(arm for arm, _ in of_arms), [field for _, field in of_arms]
        same = all((field.annotation, field.metadata) == (o.annotation, o.metadata) for o in others)
        told = Field(description=f"{field.description or ''} Arms: {names}.".strip())
        kind = Annotated[field.annotation, field, told] if same else Annotated[Any, told]
        found[key] = (kind, None if field.is_required() or not same else field.default)
    return found


class WithArms:
    """The models of questions with every setting of a row and the knobs of all arms, as editors want them."""

    def __init__(self) -> None:
        described: dict[str, Any]
        own = ((key, field) for key, field in Setting.model_fields.items() if key in ROW)
        fields: dict[str, Any] = {key: (field.annotation, field) for key, field in own}
        fields["arm"] = (Literal[*arms.names()], Setting.model_fields["arm"])
        described = {"__doc__": Question.model_fields["settings"].description}
        self.settings: Any = create_model("Settings", __base__=Model, **described, **fields, **_knobs())
        described = {"__doc__": "A row of the table: a setting of a run."}
        self.row: Any = create_model("Row", __base__=(self.settings, Heading), **described)
        rows, settings = Question.model_fields["rows"], Field(default={}, validate_default=True)
        fields = {
            "settings": (Annotated[self.settings, Question.model_fields["settings"], settings], {}),
            "rows": (Annotated[tuple[self.row, ...], rows], rows),  # type: ignore[name-defined]
        }
        self.question: Any = create_model("Question", __base__=Question, __doc__=Question.__doc__, **fields)
        name = Annotated[str, StringConstraints(pattern=QUESTION)]
        named: Any = RootModel[dict[name, self.question]]  # type: ignore[name-defined]
        self.questions = create_model("Questions", __base__=named, __doc__=Questions.__doc__)


SCHEMAS: dict[str, Callable[[], type[BaseModel]]] = {
    "config": lambda: Config,
    "questions": lambda: WithArms().questions,
    "pairs": lambda: PairRows,
}


def schema(name: str) -> dict:
    """Return the JSON schema of one kind of file, as editors want it."""
    model = SCHEMAS[name]()
    # Each file of a config may leave out what another one says.
    said = _tidy(json_schema(model), required=name != "config")
    if name == "questions":  # a file of questions names its schema, too
        said["properties"] = {"$schema": {"type": "string"}}
        pattern = said["propertyNames"]["pattern"]
        said["propertyNames"]["pattern"] = rf"{pattern}|^\$schema$"
    title = {"config": "Configuration", "questions": "Questions", "pairs": "Pair set"}[name]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **said}


def _tidy(value: Any, required: bool) -> Any:
    """Leave out titles and defaults that no key has; a mapping by patterns of its names becomes a closed one."""
    if isinstance(value, list):
        return [_tidy(item, required) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {}
    for key, item in value.items():
        if (key == "title" and isinstance(item, str)) or (key == "required" and not required):
            continue
        if key == "default" and item in (None, {}, []):
            continue
        if key == "patternProperties":
            [(pattern, inner)] = item.items()
            kept["propertyNames"] = {"pattern": pattern, "description": WORDS[pattern]}
            kept["additionalProperties"] = _tidy(inner, required)
        else:
            kept[key] = _tidy(item, required)
    return kept


def reference() -> str:
    """Return docs/config.md: every key, what it may be, what it is for, and its value in config/config.yaml."""
    parts = [
        "# Every key of a config\n\nWritten by `projected-grpo schemas` from `src/projected_grpo/cells/config.py`; "
        "the values are those of `config/config.yaml`.\nA file laid over it (`--configfile`), and `--config "
        "'grpo={lr: 0.1}'` over both, say only what differs. What does not fit\nends in one line before any job "
        "starts."
    ]
    values: Any
    values, sections = read_yaml(ROOT / "config" / "config.yaml"), defaultdict(list)
    for row in _rows(json_schema(Config), values):
        sections[row[0].partition(".")[0]].append(row)
    parts.append(_table([rows[0] for key, rows in sections.items() if len(rows) == 1 and key != "$schema"]))
    for key, (head, *below) in sections.items():
        if below:
            parts.append(f"## {key}\n\n{head[2]}\n\n{_table(below)}")
    parts.append("# Every key of a question\n\n" + _line(Questions.__doc__ or ""))
    known = WithArms()
    for title, model in (("A question", known.question), ("A row, and `settings` of all rows", known.row)):
        rows = [row for row in _rows(json_schema(model), {}) if "." not in row[0]]
        parts.append(f"## {title}\n\n{_table(rows)}")
    return "\n\n".join(parts) + "\n"


Row = tuple[str, str, str, str]


def _rows(root: dict, values: dict, schema: dict | None = None, above: str = "") -> Iterator[Row]:
    """Yield (key, allowed, what for, value) of every key; of a mapping with keys of its own itself and then each."""
    for key, said in (schema or root)["properties"].items():
        target, value = resolved(said, root), values.get(key, said.get("default"))
        text = _line(said.get("description", target.get("description", "")))
        pattern, named = next(iter(target.get("patternProperties", {}).items()), ("", {}))
        if "$ref" in named:  # each name has the same keys
            yield f"{above}{key}", "", f"{text} NAME is {WORDS[pattern]}.", ""
            yield from _rows(root, {}, resolved(named, root), f"{above}{key}.NAME.")
        elif "properties" in target:
            yield f"{above}{key}", "", text, ""
            yield from _rows(root, value or {}, target, f"{above}{key}.")
        else:
            shown = json.dumps(value) if key in values or value not in (None, {}) else ""
            yield f"{above}{key}", describe(said, root), text, shown
            for inner in (resolved(one, root) for one in target.get("anyOf", target.get("oneOf", []))):
                if "properties" in inner:  # a mapping beside null, or beside a word
                    yield from _rows(root, {}, inner, f"{above}{key}.")


def _line(text: str) -> str:
    return " ".join(text.split())


def _table(rows: list[Row]) -> str:
    lines = ["| key | allowed | | value |", "|---|---|---|---|"]
    for key, allowed, text, value in rows:
        cells = [f"`{key}`", allowed, text, f"`{value}`" if value else ""]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def texts() -> dict[Path, str]:
    """Return every generated file below the repository's root, with its text."""
    found = {
        Path("workflow/schemas", f"{name}.schema.json"): json.dumps(schema(name), indent=2) + "\n"
        for name in SCHEMAS
    }
    return found | {Path("docs/config.md"): reference()}


def add_parser(commands: argparse._SubParsersAction) -> None:
    """Add the command `schemas`."""
    words = "write the JSON schemas and docs/config.md from the models"
    parser = add_command(commands, write, "schemas", words)
    more = "a config with arms of its own: write the questions' schema with their knobs beside it instead"
    parser.add_argument("config", nargs="?", type=Path, metavar="CONFIG", help=more)


def write(args: argparse.Namespace) -> None:
    """Write every generated file, or the one of a config with arms of its own."""
    if args.config:
        said = read_mapping(args.config).get("arms") or []
        folders = [said] if isinstance(said, str) else said
        if not folders:
            raise UserError(f"{args.config}: names no folder under 'arms', so there are no arms of its own")
        if not isinstance(folders, list) or not all(isinstance(folder, str) for folder in folders):
            raise UserError(f"{args.config}: arms: {short(said)}, allowed: a folder, or a list of folders")
        folders = [os.path.expanduser(folder) for folder in folders]
        for missing in (folder for folder in folders if not Path(folder).is_dir()):
            raise UserError(f"{args.config}: arms: {missing}: no such folder")
        arms.look_in(folders)
        out = args.config.parent / "questions.schema.json"
        files.write_json(out, schema("questions"))
        print(f"wrote {out}")
        return
    for path, text in texts().items():
        files.write_text(ROOT / path, text)
        print(f"wrote {path}")
