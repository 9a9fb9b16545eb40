"""`./snakemake`: the command line that people type, the environment, locks and signals."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from snakemake.cli import get_argument_parser
from toy import call, copy, lives, start_slow, toy
from workspace import AFTER_A_SIGNAL

from projected_grpo.errors import UserError
from projected_grpo.wrapper import command_line, entry

HERE = Path(__file__).resolve().parents[2]
COMMAND = ["--cores", "8", "--resources", "gpu=1", "results/Q10.md"]


@pytest.fixture(autouse=True)
def words_of_one_call(monkeypatch):
    """What `entry.read` tells its Snakefile reaches no call of another test."""
    for name in ("PGRPO_TARGETS", "PGRPO_NAMED"):
        monkeypatch.setenv(name, "[]")


@pytest.fixture
def root(tmp_path):
    """A copy in a path with a space whose environment borrows this one's packages; its Snakefile is a toy."""
    return toy(tmp_path / "a clone")


@pytest.mark.parametrize(
    "typed",
    [
        "--cores 8 --resources gpu=1 results/Q10.md",
        "--configfile config/qwen3-4b.yaml --cores 8 --resources gpu=1 results/Q10.md",
        "--resources gpu=1 --cores 8 results/Q10.md",
        "results/Q10.md --cores 8 --resources gpu=1",
        "--cores 8 --resources gpu=1 mem_mb=100 -- results/Q10.md",
        "-c8 --res gpu=1 results/Q10.md",
        "-c 8 --config words=5 results/Q10.md --resources gpu=1",
        "--cores 8 --set-threads grpo=2 results/Q10.md --set-resources grpo:gpu=1",
        "--cores 8 --configfile config/qwen3-4b.yaml results/Q10.md",
        "--cores 8 --rerun-triggers mtime params results/Q10.md",
        "--cores 8 --quiet rules results/Q10.md",
        "--cores 8 --quiet results/Q10.md",
        "--cores 8 --default-resources mem_mb=100 results/Q10.md",
        "--core 8 --resour gpu=1 results/Q10.md",
        "--cores=8 --resources=gpu=1 results/Q10.md",
        "-np --resources gpu=1 results/Q10.md",
    ],
)
def test_snakemakes_own_parser_finds_the_target(typed):
    parser = get_argument_parser()
    assert parser.parse_args(command_line.free_targets(typed.split(), parser)).targets == ["results/Q10.md"]


@pytest.mark.parametrize(
    "words", ["--configfile mine.yaml", "--configfile ./mine.yaml", "--configfile=./mine.yaml"]
)
def test_a_config_file_lies_where_one_stands_or_in_the_repository(tmp_path, monkeypatch, words):
    parser = get_argument_parser()
    monkeypatch.chdir(tmp_path)
    below = tmp_path / "work"
    below.mkdir()
    (below / "mine.yaml").write_text("seeds: 1")

    def found():
        arguments = [*words.split(), "--cores", "1"]
        files = parser.parse_args(arguments).configfile
        return [
            str(path)
            for path in parser.parse_args(command_line.find_configs(arguments, files, str(below))).configfile
        ]

    assert found() == ["work/mine.yaml"]
    (tmp_path / "mine.yaml").write_text("seeds: 2")
    assert found() == ["mine.yaml"]  # the repository's own comes first


def test_files_that_can_be_no_config_are_not_offered(monkeypatch):
    monkeypatch.chdir(HERE)
    with pytest.raises(UserError) as end:
        command_line.check_files(["config/smok.yaml"])
    assert "config/smoke.yaml" in str(end.value) and "questions" not in str(end.value)


@pytest.mark.parametrize(
    "typed, line",
    [
        ("-n --confg seeds=1", r"--confg: no such option; .*did you mean '--config'\?"),
        (
            "--cofigfile=x.yaml results/Q10.md",
            r"--cofigfile: no such option; .*did you mean '--configfile'\?",
        ),
        (
            "-n --workflow-profile profiles/slum",
            r"--workflow-profile profiles/slum: no such profile; .*'profiles/slurm'",
        ),
        ("-n --configfile config", "config: not a readable text file"),
        ("-n --rerun-triggers code_ results/Q10.md", "argument --rerun-triggers: invalid choice: 'code_'"),
        ("-n --resources gpu", "argument --resources/--res: expected at least one argument$"),
        ("-n --resources gpu=x", "Resource 'gpu' was given value 'x', which is not an integer$"),
        ("results/Q10.md --cores", "argument --cores/-c: expected one argument$"),
    ],
)
def test_a_misspelt_option_or_profile_is_one_line(monkeypatch, typed, line):
    monkeypatch.chdir(HERE)
    with pytest.raises(UserError, match=f"^{line}"):
        entry.read(typed.split())


@pytest.mark.parametrize(
    "words",
    [
        ["-n", "--workflow-profile", "slurm"],
        ["-n", "--workflow-profile", "profiles/slurm/config.yaml"],
        ["-n", "--apptainer-args", "--bind /data --nv"],
        ["-n", "--report-html-path=x", "--core", "1", "--", "--odd"],
    ],
)
def test_what_snakemake_takes_is_no_misspelling(monkeypatch, words):
    monkeypatch.chdir(HERE)
    entry.read(words)


def test_a_number_of_seeds_that_looks_like_a_seed_is_told(capsys):
    command_line.tell_seeds(["seeds=3", "seeds=[41]", "results=there"])
    assert not capsys.readouterr().err
    command_line.tell_seeds(["seeds=45"])
    assert "45 replications, 41 to 85; seed 45 alone is --config 'seeds=[45]'" in capsys.readouterr().err


def test_a_python_in_a_path_with_a_blank_is_one_line(tmp_path):
    borrowed = tmp_path / "a blank"
    borrowed.mkdir()
    for part in Path(sys.prefix).iterdir():
        (borrowed / part.name).symlink_to(part)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PGRPO_")}
    command = [borrowed / "bin/python", "-m", "snakemake", "-n"]
    done = subprocess.run(command, cwd=HERE, env=environ, capture_output=True, text=True)
    assert done.returncode != 0 and "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].endswith("a blank in this path, start ./snakemake instead")


def test_what_belongs_to_an_option_stays_there():
    parser = get_argument_parser()
    words = "results/Q1.md --cores 4 --resources gpu=2 mem_mb=9 results/Q2.md"
    words += " --config a=1 b=x -R grpo -- results/Q3.md"
    parsed = parser.parse_args(command_line.free_targets(words.split(), parser))
    assert parsed.targets == ["results/Q1.md", "results/Q2.md", "results/Q3.md"]
    assert set(parsed.resources) == {"gpu", "mem_mb"}
    assert parsed.config == ["a=1", "b=x"] and parsed.forcerun == {"grpo"}


@pytest.mark.parametrize(
    ("typed", "cores"),
    [
        ("--cores 8 --resources gpu=9 -- x", 2),
        ("-c8 x", 2),
        ("--core=8", 2),
        ("--cores 1 --cores 8 -- x", 2),
        ("--cores 8 --cores 1 x", 1),
        ("-c 1 -- x", 1),
        ("--cores 8 --executor slurm -- x", 8),
        ("--cores 8 --workflow-profile profiles/slurm -- x", 8),
        ("--jobs 9 -- x", None),
    ],
)
def test_more_cores_than_there_are_become_those_there_are(typed, cores, capsys):
    parser = get_argument_parser()
    before = parser.parse_args(typed.split())
    after = parser.parse_args(command_line.fit_cores(typed.split(), before, 2))
    assert after.cores == cores and after.targets == before.targets
    assert bool(capsys.readouterr().err) == (before.cores != cores)


def test_the_documented_command_from_another_folder_in_a_path_with_spaces(root, tmp_path):
    done = call(root, *COMMAND, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (root / "results" / "Q10.md").read_text() == "none"
    again = call(root, *COMMAND, cwd="/")
    assert "Nothing to be done" in again.stderr + again.stdout


def test_the_scheduler_looks_at_its_jobs_when_one_ends(root):
    """With Snakemake's own job limit each look starts another a second later: over twenty for these six jobs."""
    done = call(root, "--cores", "1", "--verbose", *(f"results/{n}.brief" for n in range(6)))
    assert done.returncode == 0, done.stderr
    looks = done.stderr.count("Ready jobs: ")
    assert 6 <= looks <= 13, "once for each job that starts and each that ends"


def test_make_from_another_folder_in_a_path_with_spaces(root, tmp_path):
    done = subprocess.run(["make", "-C", root], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (root / "results" / "Q10.md").read_text() == "none"


def test_the_exit_status_is_snakemakes(root):
    assert call(root, "--cores", "1", "results/none.such").returncode == 1
    assert call(root, "--version").stdout.strip()


@pytest.mark.parametrize("limit", AFTER_A_SIGNAL)
def test_a_signal_ends_all_in_time_after_the_job_saved(root, limit):
    for number in (signal.SIGTERM, signal.SIGINT):
        (root / "checkpoint").unlink(missing_ok=True)
        process, job = start_slow(root)
        process.send_signal(number)
        assert process.wait(limit) == 128 + number
        assert (root / "checkpoint").read_text() == "saved" and not lives(job)
        assert not list((root / ".snakemake" / "locks").glob("*"))


def test_ctrl_c_reaches_all_at_once_and_is_four_lines(root):
    process, job = start_slow(root, stderr=subprocess.PIPE, text=True)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does; the wrapper's own is a second one
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130 and not lives(job)
    ends, job, kept, last = said.splitlines()[-4:]
    assert ends.startswith("Terminating processes on user request") and job.startswith(
        "0/1 slow a stopped in "
    )
    assert kept.startswith(
        "snakemake: stopped; finished steps and checkpoints of training are kept, what else "
    )
    assert last == "snakemake: type the same command to go on"
    assert "Traceback" not in said and "Error" not in said


def test_jobs_that_outlive_a_killed_run_are_ended_by_the_next(root):
    process, job = start_slow(root)
    process.kill()
    process.wait()
    time.sleep(0.5)
    assert lives(job)  # nobody told it
    assert call(root, "-n", "results/Q1.md").returncode == 0 and lives(job)
    done = call(root, "--cores", "1", "results/Q1.md")
    assert done.returncode == 0, done.stderr
    assert not lives(job) and "ended" in done.stderr


def test_the_lock_of_a_living_run_is_respected_also_after_another_run_has_ended(root):
    process, job = start_slow(root)
    assert call(root, "--cores", "1", "results/other.brief").returncode == 0
    other = call(root, "--cores", "1", "results/a.slow")
    assert other.returncode == 1 and "locked" in (other.stderr + other.stdout)
    assert lives(job) and process.poll() is None
    process.terminate()
    process.wait(10)


def test_a_stop_ends_its_own_call_alone(root):
    """Two calls in one folder: the end of the first, by either signal, leaves the second and its job as they are."""
    for number in (signal.SIGINT, signal.SIGTERM):
        first, its_job = start_slow(root)
        second, other_job = start_slow(root, "b")
        first.send_signal(number)
        assert first.wait(30) == 128 + number and not lives(its_job)
        time.sleep(1)
        assert lives(other_job) and second.poll() is None
        second.terminate()
        assert second.wait(30) == 128 + signal.SIGTERM and not lives(other_job)


# --- making the environment: a lock of three small packages, and a Snakemake that is a fake in src ---

FAKES = {
    "__init__.py": "",
    "workflow.py": "",
    "script.py": "class ScriptBase:\n    _execute_cmd = None\n",
    "exceptions.py": "class CliException(Exception):\n    pass\nclass WorkflowError(Exception):\n    pass\n",
    "persistence/file.py": "class FilePersistence:\n    pass\n",
    "cli.py": """
import argparse, sys
def get_argument_parser():
    parser = argparse.ArgumentParser()
    parser.add_argument("targets", nargs="*")
    parser.add_argument("--cores", type=int)
    for name in ("--forcerun", "--until", "--omit-from"):
        parser.add_argument(name, nargs="+")
    for name in ("--executor", "--profile", "--workflow-profile", "--config", "--configfile", "--logger"):
        parser.add_argument(name, default="own" if name == "--logger" else None)
    return parser
def main():
    print("ran", *sys.argv[1:])
""",
}


def can_install():
    words = ["-m", "pip", "download", "--no-deps", "-q", "-d", "/dev/null/x", "setuptools==0"]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True)
    return "from versions: none" not in done.stderr


@pytest.fixture
def small(tmp_path):
    if not can_install():
        pytest.skip("pip reaches no package index")
    root = tmp_path / "small root"
    copy(root)
    shutil.copytree(HERE / "src/projected_grpo", root / "src/projected_grpo")
    (root / "src/snakemake/persistence").mkdir(parents=True)
    for name, text in FAKES.items():
        (root / "src/snakemake" / name).write_text(text)
    (root / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        '[project]\nname = "fake"\nversion = "1"\n[tool.setuptools.packages.find]\nwhere = ["src"]\n'
    )
    lock = (HERE / "envs" / "lock-cpu.txt").read_text()
    pins = [
        re.search(rf"^{name}==(.*\\\n)*.*\n", lock, re.M)[0] for name in ("setuptools", "psutil", "pyyaml")
    ]
    (root / "envs" / "lock-cpu.txt").write_text("# a comment\n" + "".join(pins))
    return root


def test_the_environment_is_made_once_and_anew_when_its_lock_changes(small):
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/nowhere", "PGRPO_ENV": "cpu"}
    first = call(small, "a", PGRPO_ENV="cpu")
    assert first.returncode == 0 and first.stdout == "ran -- a\n", first.stderr
    assert "making .venv from envs/lock-cpu.txt, as there is none yet" in first.stderr
    second = call(small, "a", **offline)
    assert second.returncode == 0 and second.stderr == ""
    (small / "results").mkdir()
    (small / ".venv" / "made-from").unlink()  # as a build that was broken off
    broken = call(small, "a", **offline)
    # Nothing reruns by itself; the line names the command that lists what the new versions would run.
    kept = [line for line in broken.stderr.splitlines() if "results/ stays" in line]
    assert len(kept) == 1 and "./snakemake -n --forceall TARGET" in kept[0]
    assert broken.returncode == 1 and broken.stderr.splitlines()[-1].startswith(
        "snakemake: the environment could"
    )
    with open(small / "envs" / "lock-cpu.txt", "a") as lock:
        lock.write("# another lock\n")
    how = {"stdout": -1, "stderr": -1, "text": True, "env": {**os.environ, "PGRPO_ENV": "cpu"}}
    starts = [subprocess.Popen([small / "snakemake", word], **how) for word in "ab"]
    ends = [start.communicate(timeout=120) for start in starts]
    assert [out for out, _ in ends] == ["ran -- a\n", "ran -- b\n"], ends
    assert sum("making .venv" in err for _, err in ends) == 1


@pytest.mark.slow
def test_a_folder_that_moved_gets_an_environment_of_its_own(small):
    assert call(small, "a", PGRPO_ENV="cpu").returncode == 0
    moved = small.rename(small.parent / "elsewhere")
    done = call(moved, "a")
    assert done.returncode == 0 and "it is stale" in done.stderr


def test_what_cannot_be_made_is_one_line(small):
    done = call(small, "a", PGRPO_ENV="gpu")
    assert done.returncode == 1 and done.stderr == "snakemake: PGRPO_ENV=gpu: allowed are cpu and cuda\n"
    tools = small / "tools"
    tools.mkdir()
    for name in ("sh", "readlink", "dirname"):
        (tools / name).symlink_to(shutil.which(name))
    done = call(small, "a", PATH=str(tools))
    assert done.returncode == 1 and done.stderr.startswith("snakemake: no Python 3.11")
