"""What is written from the models: JSON schemas that editors find, and the reference of the config."""

import json
import re

import jsonschema
import pytest
from broken import CONFIG_YAML, DROP, QUESTIONS_YAML, ROOT, put
from test_config_errors import CONFIG
from test_questions_errors import QUESTIONS

from projected_grpo import arms
from projected_grpo.cells.config import Config
from projected_grpo.cells.knobs import Knobs, NamedBasis
from projected_grpo.cells.row_setting import ROW
from projected_grpo.commands import schemas
from projected_grpo.environment.levers import LOOPHOLES
from projected_grpo.method.pairs import KEYS

# What a row says beside its settings.
HEADING = ("name", "baseline", "against", "population", "place_in", "pooled")


@pytest.mark.parametrize("path", schemas.texts(), ids=str)
def test_files_are_as_the_models_write_them(path):
    # The values that a user has changed in config.yaml are no fault of the reference.
    there, made = (
        re.sub(r"`[^`|]*` \|$", "|", text, flags=re.M)
        for text in ((ROOT / path).read_text(), schemas.texts()[path])
    )
    assert there == made, "run `projected-grpo schemas`"


def test_models_say_what_the_code_says():
    for name in schemas.SCHEMAS:
        jsonschema.Draft202012Validator.check_schema(schemas.schema(name))
    modes = schemas.schema("config")["$defs"]["Pool"]["properties"]["modes"]
    assert modes["items"]["enum"] == list(LOOPHOLES)
    knobs = {key for name in arms.names() for key in arms.load(name).Knobs.model_fields}
    assert set(schemas.WithArms().settings.model_fields) == {*ROW, *knobs}
    assert set(schemas.WithArms().row.model_fields) == {*ROW, *knobs, *HEADING}
    assert set(NamedBasis.model_fields) == {*Knobs.model_fields, "pairs", "without_tag", "with_tag"}
    assert tuple(schemas.PairRow.model_fields) == KEYS


def test_every_mapping_of_the_schemas_is_closed_and_every_number_has_a_bound():
    def walk(value):
        if isinstance(value, dict):
            if value.get("type") == "object":
                assert "additionalProperties" in value
            if value.get("type") in ("integer", "number"):
                assert {"maximum", "exclusiveMaximum", "enum"} & set(value), value
            for part in value.values():
                walk(part)
        elif isinstance(value, list):
            for part in value:
                walk(part)

    for name in schemas.SCHEMAS:
        walk(schemas.schema(name))


@pytest.mark.parametrize("path", sorted((ROOT / "config").glob("*.yaml")), ids=lambda path: path.name)
def test_editors_find_the_schema_and_pass_the_file(path):
    first = path.read_text().splitlines()[0]
    schema = path.parent / first.removeprefix("# yaml-language-server: $schema=")
    said = json.loads(schema.read_text())
    assert said["$schema"].endswith("2020-12/schema")
    jsonschema.Draft202012Validator(said).validate(schemas.read_yaml(path))


@pytest.mark.parametrize("key, value", [case[:2] for case in (*CONFIG, *QUESTIONS)], ids=lambda x: None)
def test_an_editor_refuses_only_what_the_models_refuse(key, value):
    """Whatever the schema says is wrong is wrong to the models, too: they cannot drift apart."""
    top = key.partition(".")[0]
    name, sound = ("config", CONFIG_YAML) if top in CONFIG_YAML else ("questions", QUESTIONS_YAML)
    if value is DROP or top not in sound:
        return
    changed = json.loads(json.dumps(sound))
    put(changed, key, value)
    if not jsonschema.Draft202012Validator(schemas.schema(name)).is_valid(changed):
        rest = {k: v for k, v in changed.items() if k != "$schema"} if name == "questions" else changed
        with pytest.raises(ValueError):
            schemas.SCHEMAS[name]().model_validate(rest)


def test_the_config_stays_itself_through_its_plain_form():
    config = Config.model_validate(CONFIG_YAML)
    assert Config.model_validate(json.loads(json.dumps(config.plain()))) == config
