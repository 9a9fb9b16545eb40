"""What lies around a run: other processes' words, homes that take nothing, somebody else's Python, what kills leave."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from ordinary import AS_USER, give, user_python
from toy import call, start_slow, toy

from projected_grpo.wrapper.processes import executes_snakemake

TARGET = ["--cores", "1", "results/Q1.md"]


@pytest.fixture
def root(tmp_path):
    return toy(tmp_path / "a clone")


@pytest.mark.parametrize(
    ("program", "words", "real"),
    [
        ("python3.11", "python -m snakemake -n", True),
        ("python3.11", "/x/bin/python3.11 -u -X dev /x/bin/snakemake --cores 2", True),
        ("python3.11", "python -m snakemake.cli", True),
        ("tail", "tail -f ./snakemake", False),
        ("timeout", "timeout 300 ./snakemake --cores 2", False),
        ("bash", "bash -c ./snakemake snakemake", False),
        ("python3.11", "python -m http.server snakemake", False),
        ("python3.11", "python -m pytest tests/snakemake", False),
        ("python3.11", "python /x/editor.py snakemake", False),
        ("python3.11", "python -c pass snakemake", False),
        ("python3.11", "python", False),
    ],
)
def test_a_snakemake_is_told_by_what_it_executes(program, words, real):
    assert executes_snakemake(words.split(), program) is real


def kill_run(root):
    """Kill a run with all that it started; its lock stays."""
    process, _ = start_slow(root)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(0.5)
    assert any((root / ".snakemake" / "locks").iterdir())


def test_a_stale_lock_goes_whatever_words_other_processes_have(root):
    kill_run(root)
    dry = call(root, "-n", "results/a.slow")
    assert dry.returncode == 0 and any((root / ".snakemake" / "locks").iterdir())
    commands = (
        ["tail", "-f", "./snakemake"],
        ["timeout", "300", "tail", "-f", "./snakemake"],
        ["bash", "-c", "exec -a ./snakemake sleep 300"],
    )
    others = [subprocess.Popen(command, cwd=root, stdout=subprocess.DEVNULL) for command in commands]
    try:
        done = call(root, *TARGET)
        assert done.returncode == 0 and "took away the lock" in done.stderr, done.stderr
    finally:
        for other in others:
            other.kill()
            other.wait()


def test_a_plain_snakemake_keeps_its_lock(root):
    plain, _ = start_slow(root, program=[sys.executable, "-m", "snakemake"])
    try:
        done = call(root, "--cores", "1", "results/a.slow")
        assert done.returncode and "locked" in (done.stdout + done.stderr)
    finally:
        os.killpg(plain.pid, signal.SIGKILL)
        plain.wait()


def test_a_killed_run_leaves_nothing_of_snakemakes_in_the_temporary_folder(root, tmp_path, monkeypatch):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    kill_run(root)
    assert not list((tmp_path / "tmp").glob("snakemake*"))
    assert list((root / ".snakemake/tmp").iterdir())  # in its place
    assert call(root, *TARGET).returncode == 0
    assert not list((root / ".snakemake/tmp").iterdir())


HOSTILE = {
    "home": {"HOME": "/nonexistent"},
    "PYTHONHOME": {"PYTHONHOME": "/nowhere"},
    "PYTHONHASHSEED": {"PYTHONHASHSEED": "none"},
    "PYTHONWARNINGS": {"PYTHONWARNINGS": "error"},
    "PYTHONSTARTUP": {"PYTHONSTARTUP": "/nowhere", "PYTHONINSPECT": "1"},
}


@pytest.fixture(scope="module")
def users():
    """A toy that belongs to a user without any right."""
    python = user_python()
    if python is None:
        pytest.skip("no Python here that an ordinary user can run")
    folder = Path(tempfile.mkdtemp(prefix="surroundings-"))
    folder.chmod(0o755)
    try:
        yield give(toy(folder / "a clone", python).parent) / "a clone"
    finally:
        shutil.rmtree(folder)


def as_user(root, *arguments, **environ):
    said = [f"{name}={value}" for name, value in {"HOME": "/nonexistent", **environ}.items()]
    command = [*AS_USER, *said, root / "snakemake", *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("what", ["all", *(pytest.param(each, marks=pytest.mark.slow) for each in HOSTILE)])
def test_hostile_settings_of_a_user_do_no_harm(users, what):
    """Each would end a Python that heeds it, so all at once say as much as one by one; which one, the slow ones say."""
    chosen = HOSTILE.values() if what == "all" else [HOSTILE[what]]
    done = as_user(
        users, "--forceall", *TARGET, **{name: value for one in chosen for name, value in one.items()}
    )
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr


def test_a_module_on_the_users_path_hides_none_of_ours(users, tmp_path_factory):
    folder = users.parent / "hostile"
    folder.mkdir()
    for name in ("json", "subprocess", "snakemake", "yaml"):
        (folder / f"{name}.py").write_text("raise SystemExit('hijacked')\n")
    done = as_user(users, "--forceall", *TARGET, PYTHONPATH=str(folder))
    assert done.returncode == 0 and "hijacked" not in done.stderr + done.stdout, done.stderr


def test_no_which_is_needed(users):
    tools = users.parent / "tools"
    tools.mkdir()
    for name in ("sh", "bash", "env", "dirname", "readlink", "sleep", "touch"):
        (tools / name).symlink_to(shutil.which(name))
    done = as_user(users, "--forceall", *TARGET, "results/a.brief", PATH=str(tools))
    assert "which" not in done.stderr and "2/2 " in done.stderr, done.stderr
    assert (users / "results/Q1.md").exists()


def test_results_that_take_nothing_are_said_in_a_line(users):
    done = as_user(users, *TARGET)
    assert done.returncode == 0, done.stderr
    (users / "results").chmod(0o555)
    try:
        assert as_user(users, *TARGET).returncode == 0  # nothing to do
        done = as_user(users, "--cores", "1", "results/below/Q2.md")
    finally:
        (users / "results").chmod(0o755)
    assert done.returncode and "Permission denied: 'results/below'" in done.stderr
    assert "Traceback" not in done.stderr
