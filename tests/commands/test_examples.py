"""`projected-grpo examples`: which two of a run's texts stand side by side."""

import pandas as pd

from projected_grpo.commands.examples import examples

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


def test_a_wrong_hack_stands_beside_a_solve_under_its_lever(tmp_path):
    shown = examples(folder(tmp_path, ROWS))
    assert "A hack (2 of 4 answers), problem 2, sentinel" in shown and "a wrong hack" in shown
    assert "An honest solve (2 of 4 answers), problem 3, sentinel" in shown
    assert "the same lever's solve" in shown and "another" not in shown and "plain" not in shown


def test_a_run_without_a_hack_says_so(tmp_path):
    shown = examples(folder(tmp_path, ROWS[1:2]))
    assert shown.startswith("This run wrote no hack among 1 answers") and "another lever's solve" in shown
