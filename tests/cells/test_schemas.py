"""The JSON schemas: closed, found by editors, and the same choices as the code's."""

import json

import jsonschema
import pytest
from broken import ROOT

from projected_grpo.cells import cell as cells
from projected_grpo.cells.schema import load_schema
from projected_grpo.environment.modes import LOOPHOLES


def test_schemas_say_what_the_code_says():
    config, questions = load_schema("config"), load_schema("questions")
    for schema in (config, questions, load_schema("pairs")):
        jsonschema.Draft202012Validator.check_schema(schema)
    assert config["$defs"]["mode"]["enum"] == list(LOOPHOLES) == questions["$defs"]["mode"]["enum"]
    assert questions["$defs"]["held_out_mode"]["enum"] == [*LOOPHOLES, None]
    for name, choices in cells.CHOICES.items():
        assert questions["$defs"][name]["enum"] == list(choices)
    settings = set(cells.Setting.__dataclass_fields__)
    question = questions["additionalProperties"]["properties"]
    assert set(question["settings"]["properties"]) == settings
    assert set(question["rows"]["items"]["properties"]) == settings | {"name", *cells.OTHER_ROWS}
    assert set(config["properties"]["bases"]["additionalProperties"]["properties"]) == {
        *config["properties"]["basis"]["properties"],
        "pairs",
        "without_tag",
    }
    assert set(cells.SEEDED_CONTROLS) | {"none"} == set(config["$defs"]["knob"]["control"]["enum"])


def test_every_object_of_the_schemas_is_closed():
    def walk(value):
        if isinstance(value, dict):
            if "properties" in value and value.get("type") == "object":
                assert "additionalProperties" in value
            for part in value.values():
                walk(part)
        elif isinstance(value, list):
            for part in value:
                walk(part)

    for name in ("config", "questions", "pairs"):
        walk(load_schema(name))


@pytest.mark.parametrize("path", sorted((ROOT / "config").glob("*.yaml")), ids=lambda path: path.name)
def test_editors_find_the_schema(path):
    first = path.read_text().splitlines()[0]
    schema = path.parent / first.removeprefix("# yaml-language-server: $schema=")
    assert json.loads(schema.read_text())["$schema"].endswith("2020-12/schema")
