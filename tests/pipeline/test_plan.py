"""The plan against the records of outputs: without Snakemake's own memory, after copies, touches and dry runs."""

import json
import os
import shutil
import time
from collections import Counter

import pytest
from workspace import edit, planned, snakemake

from projected_grpo.records import seal

NOTHING = (Counter(), set())
MORAL = {"erase-moral-m0.125-s41", "erase-moral-refresh2-m0.125-s41"}
EDITS = {
    "pairs": ("config/pairs/moral.yaml", "I take the money", "I keep the money"),
    "code": ("src/projected_grpo/method/projection.py", "kept = g - removed", "kept = g - removed - 0"),
    "setting": ("config/smoke.yaml", "prompts: 4", "prompts: 3"),
}


@pytest.fixture(scope="module", params=["cp -r", pytest.param("cp -a", marks=pytest.mark.slow)])
def copied(finished, request, tmp_path_factory):
    """The finished copy, copied once more without `.snakemake`."""
    tree = tmp_path_factory.mktemp("copied") / "tree"
    keep = shutil.copy2 if request.param == "cp -a" else shutil.copyfile
    ignore = shutil.ignore_patterns(".snakemake", ".venv")
    shutil.copytree(finished, tree, ignore=ignore, copy_function=keep)
    return tree


def test_a_tree_copied_without_snakemakes_memory_is_finished(copied):
    assert planned(copied) == NOTHING


def test_edits_of_a_copied_tree_plan_what_they_invalidate_and_their_undoing_nothing(copied):
    for what, (name, old, new) in EDITS.items():
        shutil.rmtree(copied / ".snakemake", ignore_errors=True)
        edit(copied, name, old, new)
        jobs, cells = planned(copied)
        if what == "pairs":
            assert jobs == Counter(basis=1, grpo=2, question=1, report=1) and cells == MORAL
            assert planned(copied) == (jobs, cells), "a dry run left something behind"
        else:
            assert jobs["grpo"] == len(list((copied / "results/smoke/grpo").iterdir())), what
            assert not {"base", "teacher", "teacher_pool", "svd", "basis"} & set(jobs), what
        edit(copied, name, new, old)
    assert planned(copied) == NOTHING


def test_touched_files_plan_nothing(finished):
    results = finished / "results/smoke"
    for name in ("models/small-s41/base/model.safetensors", "teacher_pool/small-s41/pool.json"):
        os.utime(results / name)
    for path in (*results.glob("grpo/*/steps.parquet"), *results.glob("models/*/base/*.json")):
        os.utime(path)
    os.utime(finished / "docs/concepts.md")
    assert planned(finished) == NOTHING


def test_a_record_that_is_gone_or_edited_plans_its_job(finished):
    record = finished / "results/smoke/records/basis/small-s41/own_mode.safetensors.json"
    text = record.read_text()
    for damaged in (None, text.replace('"seed": 41', '"seed": 42')):
        if damaged is None:
            record.unlink()
        else:
            record.write_text(damaged)
        assert planned(finished, "results/smoke/basis/small-s41/own_mode.safetensors")[0] == {"basis": 1}
    record.write_text(text)
    assert planned(finished) == NOTHING


DAY = 86_400


def into_the_future(results, records):
    """Let these jobs have finished a day later than they did: records, files and their times."""
    for path in records:
        record = json.loads(path.read_text())
        record["finished"] += DAY
        path.write_text(json.dumps(seal(record)))
        for name in record["outputs"]:
            stat = (results / name).stat()
            os.utime(results / name, (stat.st_atime + DAY, stat.st_mtime + DAY))
    for path in results.rglob(".snakemake_timestamp"):
        os.utime(path, (path.stat().st_atime + DAY, path.stat().st_mtime + DAY))


@pytest.mark.parametrize("which", ["*/*", "models/*"])
def test_a_clock_that_was_set_back_plans_nothing_and_hides_no_edit(finished, tmp_path, which):
    tree = tmp_path / "tree"
    shutil.copytree(finished, tree, ignore=shutil.ignore_patterns(".venv"))
    results = tree / "results/smoke"
    into_the_future(results, [*(results / "records").glob(f"{which}/*.json")])
    assert planned(tree) == NOTHING
    times = [path.stat().st_mtime for path in results.rglob("*") if path.is_file()]
    assert max(times) < time.time() + 1
    edit(tree, *EDITS["pairs"])
    assert planned(tree)[1] == MORAL
    edit(tree, EDITS["pairs"][0], *reversed(EDITS["pairs"][1:]))
    assert planned(tree) == NOTHING


def test_a_report_that_another_config_wrote_under_its_name_is_made_again(finished):
    shared = "reports/paper.html"  # its first name, which every config's report can be asked for by
    snakemake(finished, shared)
    own = (finished / shared).read_text()
    assert planned(finished, shared) == NOTHING
    (finished / shared).write_text("another config's")
    assert planned(finished, shared)[0] == {"report_by_its_first_name": 1}
    snakemake(finished, shared)
    assert (finished / shared).read_text() == own


def test_an_edited_output_is_said_when_planning(finished):
    path = finished / "results/smoke/grpo/vanilla-m0-s41/run.json"
    text, stat = path.read_text(), path.stat()
    path.write_text(text.replace('"seed": 41', '"seed": 14'))
    done = snakemake(finished, "-n", "reports/smoke.html")
    assert done.stderr.count("run.json: damaged or edited, not what rule grpo wrote") == 1
    path.write_text(text)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert planned(finished) == NOTHING


def test_pair_sets_that_lie_elsewhere_train_nothing_anew(finished, tmp_path):
    shutil.copytree(finished / "config/pairs", tmp_path / "pairs")
    moved = ("--config", f"pairs={tmp_path / 'pairs'}")
    jobs, cells = planned(finished, config=moved)
    assert not cells and not {"basis", "grpo"} & set(jobs)
    edit(tmp_path, "pairs/moral.yaml", "I take the money", "I keep the money")
    assert planned(finished, config=moved)[1] == MORAL
