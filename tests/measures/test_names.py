"""A measure or contrast that no table has is one line before any job, not a page without its sentence after all."""

import pytest
import shipped
import yaml
from synthetic import ROOT, read_config

from projected_grpo.errors import UserError

OUTCOMES = [{"question": "Q10", "row": "own_mode", "measure": "hack", "contrast": "basline"}]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda asked: asked["says"][0].update(contrast="basline"), r"Q10.says\[0\].contrast: 'basline'"),
        (
            lambda asked: asked["says"][1].update(contrast="rate"),
            r"Q10.says\[1\].contrast: 'rate' of 'prog_wide'; allowed: [^r]",
        ),
        (lambda asked: asked["says"][0].update(measure="hakc"), r"Q10.says\[0\].measure: 'hakc'.*'hack'\?"),
        (
            lambda asked: asked["says"][0].update(effect="{{ of('own_mode', 'rate', 'hakc').mean }}"),
            r"Q10.says\[0\].effect: 'hakc'",
        ),
        (lambda asked: asked.update(measures=["hakc"]), r"Q10.measures\[0\]: 'hakc'"),
        (lambda asked: asked["figure"].update(measure="hakc"), "Q10.figure.measure: 'hakc'"),
        (
            lambda asked: asked["contrasts"].update(random={"x": {"own_mode": 1}}),
            "Q10.contrasts.random: 'random'",
        ),
    ],
)
def test_a_name_that_is_none_is_one_line_with_file_and_key(tmp_path, monkeypatch, change, said):
    monkeypatch.chdir(ROOT)
    asked = shipped.questions()["Q10"]
    config, questions = tmp_path / "config.yaml", tmp_path / "questions.yaml"
    config.write_text(yaml.safe_dump({"questions": str(questions)}))
    questions.write_text(yaml.safe_dump({"Q10": asked}))
    read_config(config)
    change(asked)
    questions.write_text(yaml.safe_dump({"Q10": asked}))
    with pytest.raises(UserError, match=f"^{questions}: {said}") as caught:
        read_config(config)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ({"primary": {"outcomes": OUTCOMES}}, r"primary.outcomes\[0\].contrast: 'basline'.*'baseline'\?"),
        ({"floors": {"small": {"novel_hak": {"all": 0.4}}}}, "floors.small.novel_hak: 'novel_hak'"),
        (
            {"floors": {"small": {"novel_hack": {"al": 0.4}}}},
            "floors.small.novel_hack.al: 'al'; allowed: all, ",
        ),
        ({"pilot": {"small": {"0.5": {"hakc": 0.1}}}}, "pilot.small.0.5.hakc: 'hakc'.*'hack'"),
    ],
)
def test_a_name_in_the_config_that_is_none_is_one_line(monkeypatch, said, line):
    monkeypatch.chdir(ROOT)
    with pytest.raises(UserError, match=line) as caught:
        read_config(ROOT / "config/config.yaml", **said)
    assert "\n" not in str(caught.value)
