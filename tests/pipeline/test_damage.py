"""Every kind of stored file, truncated, emptied, flipped at random or edited: said in one line, or the same results."""

import json
import os
import random
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from workspace import snakemake

from projected_grpo import records
from projected_grpo.commands.trained import read_record
from projected_grpo.environment.verdicts import VerdictCache
from projected_grpo.errors import UserError

MODEL = "models/small-s41"
CELL = "grpo/erase-own_mode-m0.125-s41"
BASE = f"{MODEL}/base/model.safetensors"
WHOLE = ("tokenizer.json", "tokenizer_config.json", "config.json", "generation_config.json", "digests.json")
ALONE = (
    BASE,
    f"{MODEL}/svd.safetensors",
    f"{MODEL}/problems.jsonl.gz",
    f"{MODEL}/teacher/model.safetensors",
    f"{MODEL}/teacher/lora/adapter_model.safetensors",
    "teacher_pool/small-s41/pool.json",
    "basis/small-s41/own_mode.safetensors",
    *(f"{CELL}/{name}.parquet" for name in ("steps", "rollouts", "deployed")),
    f"{CELL}/adapter.safetensors",
    f"{CELL}/run.json",
    "detector/penalty-direction-own_mode-m0.125-s41.parquet",
    "base/small-s41/deployed.parquet",
    "stopped/vanilla-final-m0.125-s41.parquet",
    "clean/small-s41/axes.safetensors",
    *("Q10.parquet", "Q10.md", "Q10.estimates.parquet"),
    "probe/vanilla_seed41/step_000.jsonl.gz",
)
# Stored file -> the input that stands for it in the jobs that read it.
KINDS = {file: file for file in ALONE} | {f"{MODEL}/base/{name}": BASE for name in WHOLE}
KINDS["teacher_pool/small-s41/step_003.jsonl.gz"] = "teacher_pool/small-s41/pool.json"
KINDS["figures/Q10/forest.svg"] = "figures/Q10"


def flipped(data, draws):
    place = draws.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << draws.randrange(8))]) + data[place + 1 :]


def damages(data, draws, flips):
    """Yield (name, damaged content)."""
    yield "empty", b""
    yield "truncated", data[: draws.randrange(1, len(data))]
    yield "longer", data + b"\n"
    for _ in range(flips):
        yield "flipped", flipped(data, draws)


@pytest.fixture(scope="module")
def tree(finished, tmp_path_factory):
    """A copy of the finished results that tests may damage."""
    copy = tmp_path_factory.mktemp("damage") / "results"
    shutil.copytree(finished / "results/smoke", copy, copy_function=shutil.copy2)
    return copy


def every_damage(tree, kind, seed, flips):
    path, draws = tree / kind, random.Random(f"{seed} {kind}")
    data = path.read_bytes()
    try:
        for name, damaged in damages(data, draws, flips):
            path.write_bytes(damaged)
            with pytest.raises(UserError) as caught:
                records.check(tree / KINDS[kind], tree)
            message = str(caught.value)
            assert (
                str(path) in message
                and f"rm {'-r ' * (tree / KINDS[kind]).is_dir()}{tree / KINDS[kind]}" in message
            )
            assert "\n" not in message, name
        path.unlink()
        with pytest.raises(UserError, match=r"no such file|damaged"):
            records.check(tree / KINDS[kind], tree)
    finally:
        path.write_bytes(data)
    records.check(tree / KINDS[kind], tree)


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_found_where_a_file_is_read(tree, kind):
    every_damage(tree, kind, seed=0, flips=20)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_found_at_two_thousand_places(tree, kind):
    every_damage(tree, kind, seed=1, flips=2000)


def test_the_kinds_are_all_that_jobs_read(finished):
    """Against the records themselves: every input of every job is of a kind above, or one that its folder has."""
    results = finished / "results/smoke"
    read = {
        name for path in (results / "records").rglob("*.json") for name, _ in records.read(path)["inputs"]
    }
    made = {name for name in read if not name.startswith("..")}
    folders = {os.path.dirname(name).split("/")[0] for name in KINDS.values()}
    pages = re.compile(r"(Q\d+|R\d|aa|substrate)\.(md|estimates\.parquet)|grader/.*|figures/.*|probe/.*")
    assert all(pages.fullmatch(name) or name.split("/")[0] in folders for name in made), made
    assert {name for name in read if name.startswith("..")} == {"../../docs/concepts.md"}


def test_records_are_sealed(tree):
    """An edit of a record itself is no way around it."""
    record = tree / f"records/{CELL}/steps.parquet.json"
    text = record.read_text()
    for damaged in ("", text[:-30], text.replace('"rule": "grpo"', '"rule": "base"')):
        record.write_text(damaged)
        with pytest.raises(UserError, match="damaged"):
            records.check(tree / CELL / "run.json", tree)
    record.write_text(text)


def exchange(tree, one, other):
    for a, b in ((tree / one, tree / other), (tree / "records" / one, tree / "records" / other)):
        aside = a.with_name("aside")
        a.rename(aside)
        b.rename(a)
        aside.rename(b)


@pytest.mark.parametrize(
    ("one", "other", "read"),
    [
        (CELL, "grpo/vanilla-final-m0.125-s41", "adapter.safetensors"),
        ("basis/small-s41", "basis/small-link1-s41", "random.safetensors"),
        ("models/small-s41/base", "models/small-link1-s41/base", "model.safetensors"),
        ("probe/vanilla_seed41", "probe/projected_seed41", "step_000.jsonl.gz"),
    ],
)
def test_a_whole_folder_exchanged_with_its_records_is_found(tree, one, other, read):
    exchange(tree, one, other)
    try:
        for folder in (one, other):
            with pytest.raises(UserError, match=r"the record of other files, .*to make it anew: `rm "):
                records.check(tree / folder / read, tree)
        if one == CELL:
            with pytest.raises(UserError, match="the record of other files"):
                read_record(tree / one)
    finally:
        exchange(tree, one, other)
    records.check(tree / one / read, tree)


def test_an_edited_rate_in_a_run_json_is_found_without_its_record(tree):
    path = tree / "grpo/vanilla-final-m0.125-s41/run.json"
    run = json.loads(path.read_text())
    run["final"]["hack_kept"] = 0.9
    path.write_text(json.dumps(run))
    with pytest.raises(UserError, match="edited or damaged"):
        records.read_sealed(path)


READERS = {  # stored file -> a target whose job reads it, once that target is gone
    f"{MODEL}/base/tokenizer_config.json": "basis/small-s41/own_mode.safetensors",
    f"{MODEL}/svd.safetensors": "basis/small-s41/own_mode.safetensors",
    f"{MODEL}/teacher/adapter_model.safetensors": "teacher_pool/small-s41/pool.json",
    "teacher_pool/small-s41/step_003.jsonl.gz": f"{CELL}/steps.parquet",
    "basis/small-s41/own_mode.safetensors": f"{CELL}/steps.parquet",
    f"{CELL}/rollouts.parquet": "../../reports/smoke.html",
    f"{CELL}/deployed.parquet": "Q10.md",
    f"{CELL}/run.json": "Q10.md",
    f"{CELL}/adapter.safetensors": "probe/drift/erase-own_mode-m0.125-s41.json",
    "probe/vanilla_seed41/step_000.jsonl.gz": "probe/uat.md",
}


def damage_and_run(tree, kind, data):
    """Damage a file, keep its time, delete what was made of it and ask for that again."""
    results = tree / "results/smoke"
    path, target = results / kind, Path(os.path.normpath(results / READERS[kind]))
    stat = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    target.unlink()
    done = snakemake(tree, str(target.relative_to(tree)), check=False)
    return done, not target.exists()


@pytest.fixture
def scratch(finished, tmp_path):
    """A copy of the finished tree that a test may ruin."""
    shutil.copytree(finished, tmp_path / "tree", ignore=shutil.ignore_patterns(".venv"))
    return tmp_path / "tree"


@pytest.mark.parametrize(
    "kind",
    [
        "basis/small-s41/own_mode.safetensors",
        *(pytest.param(k, marks=pytest.mark.slow) for k in READERS if not k.startswith("basis")),
    ],
)
def test_a_job_that_reads_a_damaged_file_ends_with_one_line(scratch, kind):
    data = (scratch / "results/smoke" / kind).read_bytes()
    done, kept_out = damage_and_run(scratch, kind, flipped(data, random.Random(kind)))
    said = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert done.returncode and kept_out and len(set(said)) == 1, done.stderr[-3000:]
    assert said[0].startswith(f"error: results/smoke/{kind}: damaged or edited, not what rule ")
    assert "`rm results/smoke/" in said[0] and "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_command_of_the_line_makes_the_file_anew(scratch):
    results = scratch / "results/smoke"
    path = results / "basis/small-s41/own_mode.safetensors"
    before = path.read_bytes()
    table = pd.read_parquet(results / "Q10.parquet")
    path.write_bytes(flipped(before, random.Random(3)))
    done = snakemake(scratch, "results/smoke/Q10.md", check=False)
    (key,) = set(re.findall(r"`rm (\S+)`", done.stderr))
    (scratch / key).unlink()
    snakemake(scratch, "results/smoke/Q10.md")
    assert path.read_bytes() == before  # equal runs give equal bytes
    pd.testing.assert_frame_equal(pd.read_parquet(results / "Q10.parquet"), table, check_exact=True)


@pytest.mark.parametrize("damage", ["empty", "truncated", "flipped", "no database"])
def test_a_damaged_verdict_cache_is_dropped(tmp_path, damage):
    path = tmp_path / "verdicts.sqlite"
    rows = {i.to_bytes(16): {"error": None, "reward": i, "text": "x" * (i % 50)} for i in range(300)}
    made = VerdictCache(path)
    for key, verdict in rows.items():
        made.put(key, verdict)
    made.close()
    data, draws = path.read_bytes(), random.Random(0)
    for _ in range(40 if damage == "flipped" else 1):
        path.write_bytes(
            {
                "empty": b"",
                "truncated": data[: draws.randrange(1, len(data))],
                "flipped": flipped(data, draws),
                "no database": b"no database" * 100,
            }[damage]
        )
        cache = VerdictCache(path)
        for key, verdict in rows.items():
            found = cache.get(key)
            assert found is None or found == verdict
        cache.put(b"new", {"error": None, "reward": 1})
        assert cache.get(b"new") == {"error": None, "reward": 1}
        cache.close()
