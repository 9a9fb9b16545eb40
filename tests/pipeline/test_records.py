"""Records lie beside what they are of: exchanged ones are found wherever a file is read."""

import pytest

from projected_grpo import records
from projected_grpo.errors import UserError


def job(results, folder, *names):
    """Leave files and their record as a job does."""
    outputs = []
    for name in names:
        path = results / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{folder} {name}")
        outputs.append(str(path))
    records.write({"rule": "grpo", "inputs": []}, outputs, str(results))


def exchange(results, one, other):
    for a, b in ((results / one, results / other), (results / "records" / one, results / "records" / other)):
        a.rename(a.with_name("aside"))
        b.rename(a)
        a.with_name("aside").rename(b)


@pytest.mark.parametrize("read", ["steps.parquet", "run.json"])
def test_folders_exchanged_with_their_records_are_found(tmp_path, read):
    for cell in ("a", "b"):
        job(tmp_path, f"grpo/{cell}", "steps.parquet", "run.json")
    records.check(tmp_path / "grpo/a" / read, tmp_path)
    exchange(tmp_path, "grpo/a", "grpo/b")
    for cell in ("a", "b"):
        with pytest.raises(
            UserError,
            match=r"steps.parquet.json: the record of other files, first grpo/./run.json; to make it",
        ):
            records.check(tmp_path / f"grpo/{cell}" / read, tmp_path)
        with pytest.raises(UserError, match="the record of other files"):
            records.check_read(tmp_path / f"grpo/{cell}" / read)


def test_a_report_outside_of_the_results_folder_and_an_empty_folder_have_their_records(tmp_path):
    results = tmp_path / "results" / "smoke"
    job(results, "../../reports", "smoke.html")
    records.check(tmp_path / "reports/smoke.html", results)
    (results / "figures/Q1").mkdir(parents=True)
    (results / "Q1.md").write_text("page")
    records.write(
        {"rule": "verdict", "inputs": []}, [str(results / "Q1.md"), str(results / "figures/Q1")], str(results)
    )
    for path in records.record_paths([str(results / "Q1.md"), str(results / "figures/Q1")], str(results)):
        records.read(path)
