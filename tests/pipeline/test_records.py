"""Records lie beside what they are of, and the plan believes their times only as far as the clock does."""

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from projected_grpo import digests, plan, records
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


@pytest.mark.parametrize("ahead", [(0, 1), (0,), (1,)])
def test_a_time_in_the_future_is_never_restored_and_order_stays(tmp_path, monkeypatch, ahead):
    """While some of three jobs ran the clock was a day ahead; each is made of the one before."""
    monkeypatch.chdir(tmp_path)
    results, now = str(tmp_path), time.time()
    files = [str(tmp_path / name) for name in ("base.bin", "svd.bin", "run.json")]
    asked = []
    for number, file in enumerate(files):
        Path(file).write_text(f"file {number}")
        inputs = files[number - 1 : number] if number else []
        given = [[records.relative(path, results), digests.file_digest(path)] for path in inputs]
        records.write({"rule": "r", "code": "c", "settings": {}, "inputs": given}, [file], results)
        late = 86_400 + number if number in ahead else 600 * (number - 3)
        path = records.record_path(file, results)
        path.write_text(json.dumps(records.seal(json.loads(path.read_text()) | {"finished": now + late})))
        os.utime(file, (now + late, now + late))
        asked.append(plan.Asked(outputs=[file], inputs=inputs, settings="{}", code="c"))
    assert [plan.reason(job, results) for job in reversed(asked)] == [None, None, None]
    times = [os.stat(file).st_mtime for file in files]
    assert times == sorted(times) and times[-1] == pytest.approx(now - 600, abs=1)
    os.utime(files[0], (now + 86_400, now + 86_400))
    plan._mark.cache_clear()  # it is of another folder
    edited = replace(asked[0], code="another")
    assert (
        plan.reason(edited, results) == "code"
        and os.stat(files[0]).st_mtime < os.stat(plan.mark("code")).st_mtime
    )


def test_an_output_that_another_config_wrote_is_made_again(tmp_path):
    results = tmp_path / "results" / "smoke"
    job(results, "../../reports", "paper.html")
    page = tmp_path / "reports/paper.html"
    record = records.record_path(results / "../../reports/paper.html", results)
    record.write_text(
        json.dumps(records.seal(json.loads(record.read_text()) | {"code": "c", "settings": {}}))
    )
    asked = plan.Asked(outputs=[str(page)], inputs=[], settings="{}", code="c")
    assert plan.reason(asked, str(results)) is None
    page.write_text("another config's")
    assert plan.reason(asked, str(results)) == "record"
