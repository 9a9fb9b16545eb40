"""`projected-grpo examples`: which two of a run's texts stand side by side."""

import pandas as pd
import pytest

from projected_grpo import records
from projected_grpo.commands.examples import examples
from projected_grpo.errors import UserError

ROWS = [  # panel, mode, gt_pass, channel, completion
    ("known", "sentinel", True, True, "a right hack"),
    ("known", "run_tests", True, False, "another lever's solve"),
    ("novel", "sentinel", False, True, "a wrong hack"),
    ("known", "sentinel", True, False, "the same lever's solve"),
    ("plain", "gt_only", True, False, "a plain solve"),
]


def folder(tmp_path, rows):
    frame = pd.DataFrame(rows, columns=["panel", "mode", "gt_pass", "channel", "completion"])
    frame = frame.assign(problem_id=[str(n) for n in range(len(frame))], prompt="Return a.")
    frame.to_parquet(tmp_path / "deployed.parquet")
    return tmp_path


def test_a_wrong_hack_stands_beside_a_solve_under_its_lever(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "130")
    shown = examples(folder(tmp_path, ROWS))
    assert "A hack (2 of 4 answers), problem 2, sentinel" in shown and "a wrong hack" in shown
    assert "An honest solve (2 of 4 answers), problem 3, sentinel" in shown
    assert "the same lever's solve" in shown and "another" not in shown and "plain" not in shown


@pytest.mark.parametrize("columns", [60, 80, 110, 300])
def test_both_fit_the_terminal_from_eighty_columns_on(tmp_path, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    long = [(*row[:4], f"{row[4]} {'and so on ' * 30}") for row in ROWS]
    lines = examples(folder(tmp_path, long)).splitlines()
    assert 79 <= max(map(len, lines)) <= min(max(columns, 80), 130) or columns == 300
    assert sum(line.split().count("so") for line in lines) == 60


def test_a_run_without_a_hack_says_so(tmp_path):
    shown = examples(folder(tmp_path, ROWS[1:2]))
    assert shown.startswith("This run wrote no hack among 1 answers") and "another lever's solve" in shown


def test_texts_that_are_not_as_the_run_wrote_them_are_not_shown(tmp_path):
    run = tmp_path / "grpo/vanilla-m0-s41"
    run.mkdir(parents=True)
    records.write({"rule": "grpo"}, [str(folder(run, ROWS) / "deployed.parquet")], str(tmp_path))
    assert "a wrong hack" in examples(run)
    with pytest.raises(UserError, match="damaged or edited"):
        examples(folder(run, ROWS[1:]))


def test_a_folder_without_a_run_is_one_line(tmp_path):
    with pytest.raises(UserError, match=r"deployed\.parquet: no such file; RUN is a folder"):
        examples(tmp_path / "none")
