"""Atomic files and folders, and what a job says when it ends badly."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from projected_grpo.errors import UserError
from projected_grpo.files import atomic, atomic_folder
from projected_grpo.job import job


@pytest.fixture
def dead_pid():
    """The id of a process that has ended."""
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    return done.pid


def test_what_a_killed_writer_left_goes_with_the_next_write_and_what_others_write_stays(tmp_path, dead_pid):
    left = tmp_path / f".x.json.{dead_pid}.abc.json"
    other = tmp_path / f".x.json.{os.getppid()}.abc.json"
    for path in (left, other, tmp_path / f".y.json.{dead_pid}.abc.json", tmp_path / ".x.json.note"):
        path.write_text("half")
    with atomic(tmp_path / "x.json") as temporary:
        temporary.write_text("whole")
    names = {path.name for path in tmp_path.iterdir()} - {"x.json"}
    assert names == {other.name, f".y.json.{dead_pid}.abc.json", ".x.json.note"}
    (tmp_path / f".model.{dead_pid}.abc").mkdir()
    with atomic_folder(tmp_path / "model") as folder:
        (folder / "weights").write_text("whole")
    assert (tmp_path / "model" / "weights").read_text() == "whole"
    assert not (tmp_path / f".model.{dead_pid}.abc").exists()


def run_job(folder, body, **more):
    """Run `body` as a rule's script does and return what its log says."""
    given = {"rule": "basis", "wildcards": {"basis": "moral"}, "params": {"seed": 41}, "threads": 1}
    path = folder / "log"
    with job(SimpleNamespace(log=[str(path)], **{**given, **more})):
        body()
    return path.read_text()


def test_a_log_opens_with_rule_wildcards_seed_and_a_hash_of_the_settings(tmp_path):
    first = run_job(tmp_path, lambda: None)
    assert "rule basis, basis moral, seed 41, settings " in first
    same = run_job(tmp_path, lambda: None)
    other = run_job(tmp_path, lambda: None, params={"seed": 41, "knobs": "k"})
    assert first.split("settings ")[1] == same.split("settings ")[1] != other.split("settings ")[1]


def too_much_memory():
    torch.empty(1 << 55, dtype=torch.uint8)


def gpu_full():
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


def python_full():
    raise MemoryError


@pytest.mark.parametrize("body", [too_much_memory, gpu_full, python_full])
def test_out_of_memory_is_one_line(tmp_path, capsys, body):
    with pytest.raises(SystemExit) as ended:
        run_job(tmp_path, body)
    assert ended.value.code == 1
    assert capsys.readouterr().err == f"error: out of memory; see {tmp_path / 'log'}\n"
    assert type(ended.value.__cause__) is type(None) and "memory" in (tmp_path / "log").read_text().lower()


def test_other_errors_keep_their_traceback_and_user_errors_are_one_line(tmp_path, capsys):
    def wrong_shape():
        raise RuntimeError("shapes differ")

    def user():
        raise UserError("pairs/moral.yaml: no such file")

    with pytest.raises(RuntimeError):
        run_job(tmp_path, wrong_shape)
    with pytest.raises(SystemExit):
        run_job(tmp_path, user)
    assert capsys.readouterr().err == "error: pairs/moral.yaml: no such file\n"


def test_a_full_disk_under_the_log_costs_the_log_alone(tmp_path, capsys):
    run_job(tmp_path, lambda: None)
    done = []
    given = {"rule": "basis", "wildcards": {}, "params": {}, "threads": 1, "log": ["/dev/full"]}
    with job(SimpleNamespace(**given)) as log:
        log.info("a line")
        log.info("another")
        done.append(True)
    said = capsys.readouterr().err.splitlines()
    assert done and len(said) == 1 and "/dev/full: cannot be written" in said[0]


def test_a_log_that_cannot_be_opened_is_one_line(tmp_path, capsys):
    (tmp_path / "log").mkdir()
    with pytest.raises(SystemExit):
        run_job(tmp_path, lambda: None)
    assert (
        capsys.readouterr().err
        == f"error: {tmp_path / 'log'}: no log can be written there (Is a directory)\n"
    )
