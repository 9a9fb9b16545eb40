"""No two settings share a run, a model or a file: such rows and names end in one line with file and key."""

import pytest
from broken import CONFIG_YAML, matches, put

from projected_grpo.cells.cell import add_cell, make_cell
from projected_grpo.cells.config import Config
from projected_grpo.cells.row_setting import make_setting
from projected_grpo.cells.setting import Setting
from projected_grpo.errors import UserError

LONG = {"name": "long", "preset": "long"}
# Row, row that it may not stand beside, key of the line.
CLASHES = [
    ({"lr": 0.1234567}, {"lr": 0.12345671}, "lr"),
    ({"preset": "open", "mix": 0.25}, {"preset": "open", "mix": 0.250000001}, "mix"),
    (
        {"arm": "erase", "basis": "own_mode", "overshoot": 0.3333333},
        {"arm": "erase", "basis": "own_mode", "overshoot": 1 / 3},
        "overshoot",
    ),
    # One name with a dash in it, and two names with a dash between them.
    ({"variant": "b-long"}, {"variant": "b", "preset": "long"}, "variant"),
    ({"arm": "erase", "basis": "moral-b"}, {"arm": "erase", "basis": "moral", "variant": "b"}, "basis"),
]


@pytest.fixture
def named(folder):
    """The default config with names that can be mistaken for others, and a question of its own."""
    folder.config["small"]["variants"] |= {"b-long": {"leak": 0.1}, "b": {"leak": 0.2}}
    folder.config["grpo"]["presets"]["open"] = {"steps": 3, "group": 8}
    folder.config["bases"]["moral-b"] = {"pairs": "moral"}
    folder.questions = {"Q1": {"title": "t", "asks": "a?", "rows": [{"name": "a"}]}}
    folder.config["primary"]["outcomes"] = []
    return folder


@pytest.mark.parametrize(("one", "other", "key"), CLASHES)
@pytest.mark.parametrize("apart", [False, True], ids=["in one question", "in two"])
def test_two_settings_of_one_id_are_refused(named, one, other, key, apart):
    rows = named.questions["Q1"]["rows"] = [{"name": "a"}, {"name": "one", **one}]
    named.check()
    if apart:
        named.questions["Q2"] = {"title": "t", "asks": "a?", "rows": [{"name": "other", **other}]}
    else:
        rows.append({"name": "other", **other})
    place = "Q2.rows[0]" if apart else "Q1.rows[2]"
    assert matches(named.error(), f"questions.yaml: {place}.{key}: .*Q1.rows[1] has the same id, .*allowed: ")


def test_rows_of_one_setting_share_their_run(named):
    rows = [{"name": "a"}, {"name": "b", "mix": 0.125}, {"name": "c", "size": "0.9M"}]
    named.questions["Q1"]["rows"] = rows
    named.check()


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("variants.3M", {"leak": 0.1}, "small.variants.3M: a name under small.sizes, too, allowed: "),
        ("variants.long", {"leak": 0.1}, "grpo.presets.long: a name under small.variants, too, "),
        ("variants.3M-b", {"leak": 0.1}, "small.variants.b: .*would be the model small-3M-b-s41, as "),
        ("sizes.alike", {}, "self_taught.grid: 'alike' is the name of other critics, allowed: "),
    ],
)
def test_names_that_make_one_folder_are_refused(named, key, value, line):
    named.config["self_taught"]["grid"] = "alike" if "alike" in key else None
    put(named.config["small"], key, value)
    assert matches(named.error(), f"config.yaml: {line}")


def test_a_basis_named_as_the_seeded_file_of_another_is_refused(named):
    named.config["bases"]["random-s42"] = {"pairs": "moral"}
    named.check()  # a replication has a folder of its own
    named.config["model"] |= {"base": "Qwen/Qwen3-4B", "teacher": "o/t", "name": "qwen3-4b"}
    line = (
        "config.yaml: bases.random: 'random' is the file of 'random-s42' with seed 42, allowed: another name"
    )
    assert matches(named.error(), line)


def test_a_run_of_no_row_takes_no_other_run_s_id():
    config = Config.model_validate(CONFIG_YAML)
    cells = {}
    first = add_cell(cells, make_cell(Setting(), 41, config))
    assert add_cell(cells, make_cell(Setting(mix=0.125), 41, config)) is first
    with pytest.raises(UserError, match=r"^vanilla-m0.125-s41: two runs that differ in lr have this id"):
        add_cell(cells, first.model_copy(update={"setting": first.setting.model_copy(update={"lr": 0.1})}))


@pytest.mark.parametrize("arm", ["vanilla", "gt_only", "trusted"])
def test_a_run_of_no_row_is_that_of_the_row_that_says_as_little(arm):
    """Knobs that nobody says are the arm's defaults, wherever the setting comes from: one id, one text."""
    config = Config.model_validate(CONFIG_YAML)
    of_row = make_cell(make_setting({"arm": arm}), 41, config)
    assert make_cell(Setting(arm=arm), 41, config).params() == of_row.params()
