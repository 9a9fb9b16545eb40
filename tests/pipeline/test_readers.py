"""Commands outside of jobs check what they read, and hub ids count by the revision that is here."""

import json
import os
import shutil

import pytest
from synthetic import read_config
from workspace import ROOT

from projected_grpo import digests, hub, records
from projected_grpo.cli import main
from projected_grpo.errors import UserError
from projected_grpo.pages import edition, publish

LORA = "grpo/erase-own_mode_lora-lora-m0.125-s41"


@pytest.fixture
def results(finished, tmp_path):
    shutil.copytree(finished / "results/smoke", tmp_path / "results")
    return tmp_path / "results"


def flip(path):
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


@pytest.mark.parametrize(
    "name",
    [
        *(f"{LORA}/{file}" for file in ("run.json", "adapter.safetensors", "steps.parquet")),
        "models/small-s41/base/model.safetensors",
    ],
)
def test_export_refuses_a_damaged_run_or_base(results, tmp_path, capsys, name):
    flip(results / name)
    assert main(["export", str(results / LORA), str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and f"{results / name}: damaged or edited, not what rule " in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "name", ["aa.md", "probe/uat.md", "figures/grader/diagonal/matrix.svg", f"{LORA}/rollouts.parquet"]
)
def test_publishing_refuses_a_damaged_page_figure_or_run(results, tmp_path, monkeypatch, name):
    monkeypatch.chdir(ROOT)
    config, questions = read_config(ROOT / "config/smoke.yaml", results=str(results))
    assert (results / name).exists()
    flip(results / name)
    with pytest.raises(UserError, match=r"damaged or edited, not what rule|rollouts\.parquet"):
        publish.publish(config, questions, edition.Place(tmp_path / "docs"), None)
    assert not (tmp_path / "docs").exists()


def test_a_hub_id_counts_by_its_revision_and_content(tmp_path, monkeypatch):
    stored = tmp_path / "models--owner--name"
    for revision, text in (("aaa", "1"), ("bbb", "2")):
        folder = stored / "snapshots" / revision
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(text)
    (stored / "refs").mkdir()
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    seen = set()
    for revision in ("aaa", "bbb"):
        (stored / "refs" / "main").write_text(revision)
        seen.add(hub.checkpoint_digest("owner/name"))
        assert hub.local_folder("owner/name", "config.json") == stored / "snapshots" / revision
    assert len(seen) == 2
    assert hub.local_folder("owner/other", "config.json") is None


def test_a_large_file_is_hashed_once_until_it_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(digests, "LARGE", 10)
    (tmp_path / ".snakemake").mkdir()
    path, asked = tmp_path / "weights.bin", []
    whole = digests._hashed
    monkeypatch.setattr(digests, "_hashed", lambda file: asked.append(file) or whole(file))
    path.write_bytes(b"a" * 100)
    first = digests.file_digest(path)
    assert digests.file_digest(path) == first and len(asked) == 1
    stat = path.stat()
    path.write_bytes(b"a" * 99 + b"b")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # as a restored time hides an edit
    assert digests.file_digest(path) != first and len(asked) == 2
    for kept in (tmp_path / digests.CACHE).iterdir():
        kept.write_text("damaged")
    assert digests.file_digest(path) == whole(path) and len(asked) == 3


def test_a_record_says_when_where_and_from_what(results):
    record = records.read(results / f"records/{LORA}/steps.parquet.json")
    run = json.loads((results / LORA / "run.json").read_text())
    for said in (record, run):
        assert set(said) >= {"commit", "date", "host", "versions", "digest", "code"}
    assert run["inputs"]["base"] == dict(record["inputs"])["models/small-s41/base/model.safetensors"]
    assert record["code"] == run["code"]
