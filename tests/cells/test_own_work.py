"""Arms, questions and pair sets of a user's own, laid over those of the tree."""

import json

import pytest
import yaml
from broken import matches
from jsonschema import Draft202012Validator

from projected_grpo import arms
from projected_grpo.cells.check import load
from projected_grpo.cells.row_setting import make_setting
from projected_grpo.cli import main
from projected_grpo.commands import schemas
from projected_grpo.errors import UserError
from projected_grpo.yaml_layers import QuestionFiles

ARM = """
from typing import Annotated
from pydantic import Field
from projected_grpo.arms import Arm, ArmKnobs, Tag
class {name}Knobs(ArmKnobs):
    cost: Annotated[float, Tag("cost{{}}"), Field(ge=0, le=1)] = 0.1
class {name}(Arm):
    Knobs = {name}Knobs
    family = "reward"
"""


@pytest.fixture
def own(folder, monkeypatch):
    """The default config with a folder of arms, in which `own.arm(name, text)` puts one."""
    monkeypatch.setenv(arms.FOLDERS, "[]")
    folder.config["arms"] = str(folder.path / "arms")
    (folder.path / "arms").mkdir()

    def arm(name, text=ARM):
        (folder.path / "arms" / f"{name}.py").write_text(text.format(name=name.title()))

    folder.arm = arm
    return folder


def test_its_knobs_are_checked_as_those_of_the_tree(own):
    own.arm("shorter")
    rows = own.questions["Q10"]["rows"]
    rows.append({"name": "s", "arm": "shorter", "cost": 0.5})
    own.check()
    assert make_setting({"arm": "shorter"}).knobs.cost == 0.1
    assert {"cost"} < set(schemas.WithArms().row.model_fields)
    rows[-1]["cost"] = 2
    place = f"Q10.rows[{len(rows) - 1}]"
    assert matches(own.error(), f"questions.yaml: {place}.cost: 2, allowed: a number >= 0 and <= 1")
    rows[-1] = {"name": "s", "arm": "vanilla", "cost": 0.5}
    assert matches(own.error(), f"{place}.cost: 0.5 with arm 'vanilla', allowed beside arm penalty, shorter")
    own.config["arms"] = []
    rows[-1] = {"name": "s", "arm": "shorter"}
    assert matches(own.error(), f"{place}.arm: 'shorter'; allowed: absorb, ")


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("erase", ARM, "arms/erase.py: .*arms/erase.py is an arm of this name, allowed: another one"),
        ("Big", ARM, "arms/Big.py: as an arm's name, allowed: small letters, digits and _"),
        ("broken", "def (", "arms/broken.py: this arm cannot be loaded (SyntaxError: "),
        ("hollow", "x = 1", "arms/hollow.py: no class Hollow, a subclass of Arm, in this arm's file"),
        (
            "plain",
            "from projected_grpo.arms import Arm\nclass Plain(Arm):\n    pass",
            "arms/plain.py: Plain.family is missing, allowed: none, less, ",
        ),
        (
            "taken",
            ARM.replace("cost:", "mix:"),
            "arms/taken.py: a knob 'mix', which every row has, allowed: ",
        ),
        (
            "misspelt",
            ARM
            + "    def advantage(self, A, seen):\n        return A\n    def _label(self):\n        return 1\n",
            "arms/misspelt.py: Misspelt.advantage is no hook and is never called as one; did you mean 'advantages'?",
        ),
        (
            "fewer",
            ARM + "    def advantages(self, A):\n        return A\n",
            "arms/fewer.py: Fewer.advantages(self, A), allowed: advantages(self, A: .*, seen: .*)",
        ),
    ],
)
def test_a_file_that_is_no_arm_of_its_own_is_one_line(own, name, text, line):
    own.arm(name, text)
    assert matches(own.error(), line)


def test_a_knob_that_no_id_has_is_told_to_have_a_tag(own):
    own.arm("untagged", ARM.replace('Tag("cost{{}}"), ', ""))
    rows = own.questions["Q10"]["rows"]
    rows += [{"name": name, "arm": "untagged", "cost": cost} for name, cost in (("s", 0.5), ("t", 0.6))]
    assert matches(
        own.error(), "questions.yaml: .*cost 0.6, not 0.5; .*, allowed: a Tag of this knob in its arm"
    )


def test_a_folder_that_is_not_there_is_one_line(own):
    own.config["arms"] = ["nowhere"]
    assert matches(own.error(), "config.yaml: arms: nowhere: no such folder")


FIRST = {"Q1": {"title": "t", "asks": "a?", "rows": [{"name": "a"}]}}


@pytest.fixture
def layered(folder):
    """The default config with two files of questions; `layered.second` is what the later one says."""
    folder.questions, folder.second = FIRST, {}
    folder.config["primary"]["outcomes"] = []
    folder.config["questions"] = [str(folder.path / name) for name in ("questions.yaml", "mine.yaml")]

    def check():
        for name, said in (
            ("config", folder.config),
            ("questions", folder.questions),
            ("mine", folder.second),
        ):
            (folder.path / f"{name}.yaml").write_text(yaml.safe_dump(said, sort_keys=False))
        return load([folder.path / "config.yaml"], folder.config)

    folder.check = check
    return folder


def test_a_later_file_adds_rows_and_questions(layered):
    layered.second = {"Q1": {"asks": "b?", "rows": [{"name": "b", "mix": 0.5}]}, "Q5": FIRST["Q1"]}
    config, parsed = layered.check()
    assert [row["name"] for row in parsed["Q1"]["rows"]] == ["a", "b"]
    assert parsed["Q1"]["title"] == "t" and parsed["Q1"]["asks"] == "b?" and parsed["Q5"] == FIRST["Q1"]
    assert QuestionFiles(config.questions).parsed == parsed


@pytest.mark.parametrize(
    ("second", "line"),
    [
        ({"Q1": {"rows": [{"name": "b", "mix": 2}]}}, "mine.yaml: Q1.rows[0].mix: 2, allowed: "),
        (
            {"Q1": {"rows": [{"name": "a"}]}},
            "mine.yaml: Q1.rows[0].name: 'a' is .*questions.yaml: Q1.rows[0]'s name, allowed: each once",
        ),
        (
            {"q1": {"rows": [{"name": "b"}]}},
            "mine.yaml: q1.title: missing; .*; as more rows of a question: allowed: Q1",
        ),
        ({"Q1": {"kind": "tabel"}}, "mine.yaml: Q1.kind: 'tabel'; allowed: table, "),
        ({"Q2": {"title": "t", "rows": [{"name": "b"}]}}, "mine.yaml: Q2.asks: missing; required: "),
        ({"Q1": {"rows": 3}}, "mine.yaml: Q1.rows: 3, allowed: "),
        ([], "mine.yaml: [], allowed: a non-empty mapping of questions"),
    ],
)
def test_a_mistake_names_the_file_that_says_it_and_the_place_in_that_file(layered, second, line):
    layered.second = second
    with pytest.raises(UserError) as caught:
        layered.check()
    assert matches(str(caught.value), line)


def test_the_schema_for_editors_has_its_knobs(own, capsys):
    own.arm("shorter")
    own.check()
    main(["schemas", str(own.path / "config.yaml")])
    schema = json.loads((own.path / "questions.schema.json").read_text())
    row = {"name": "s", "arm": "shorter", "cost": 0.5}
    question = {"title": "t", "asks": "a?", "rows": [row]}
    Draft202012Validator(schema).validate({"Q1": question})
    row["arm"] = "shortest"
    assert not Draft202012Validator(schema).is_valid({"Q1": question})


def test_a_schema_with_arms_that_are_not_there_is_one_line(tmp_path, capsys):
    config = tmp_path / "config.yaml"
    config.write_text("arms: [nowhere]\n")
    assert main(["schemas", str(config)]) == 2
    assert capsys.readouterr().err == f"projected-grpo: {config}: arms: nowhere: no such folder\n"
    for wrong in ("3", "[nowhere, 3]", "{a: b}"):
        config.write_text(f"arms: {wrong}\n")
        assert main(["schemas", str(config)]) == 2
        assert capsys.readouterr().err.endswith(", allowed: a folder, or a list of folders\n")
    config.write_text("arms:\n")
    assert main(["schemas", str(config)]) == 2
    line = f"projected-grpo: {config}: names no folder under 'arms', so there are no arms of its own\n"
    assert capsys.readouterr().err == line
