"""Damaged configs: each is read, or ends in one line that names a file; none hangs, none is a traceback."""

import functools
import random
import shutil
import signal
import time
from pathlib import Path

import pytest
from broken import ROOT, merge
from mutations import mutant
from workspace import borrow_environment, clone, snakemake

from projected_grpo.cells import cell as cells
from projected_grpo.cells.check import load
from projected_grpo.errors import UserError
from projected_grpo.strict_yaml import read_mapping

SEED = 11
MUTANTS = 500
REAL = range(20, 60, 2)  # of those, the ones that a real Snakemake gets
LIMIT = 10  # seconds


def read(paths):
    """What `./snakemake` does with config files before any rule."""
    merged = functools.reduce(merge, (read_mapping(path) for path in paths))
    config, questions = load(paths, merged)
    return cells.all_cells(cells.load_questions(questions, config))


def damaged(folder, number):
    """Write one mutant; return the config files to read."""
    rng = random.Random(f"{SEED} {number}")
    name = rng.choice(("config", "config", "smoke", "questions"))
    (folder / "config").mkdir(exist_ok=True)
    files = {path.name: path.read_text() for path in (ROOT / "config").glob("*.yaml")}
    files[f"{name}.yaml"] = mutant(files[f"{name}.yaml"], f"{SEED} {number}")
    for file, text in files.items():
        (folder / "config" / file).write_text(text, encoding="utf-8", errors="surrogatepass")
    if not (folder / "config" / "pairs").exists():
        (folder / "config" / "pairs").symlink_to(ROOT / "config" / "pairs")
    return [
        Path("config", f"{file}.yaml") for file in (("config", "smoke") if name == "smoke" else ("config",))
    ]


@pytest.mark.parametrize(
    "numbers", [range(20), pytest.param(range(20, MUTANTS), marks=pytest.mark.slow)], ids=["first", "rest"]
)
def test_no_damage_is_a_traceback_or_a_hang(tmp_path, monkeypatch, numbers):
    monkeypatch.chdir(tmp_path)

    def late(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    wrong, refused = [], 0
    for number in numbers:
        paths = damaged(tmp_path, number)
        signal.alarm(LIMIT)
        try:
            read(paths)
        except UserError as error:
            refused += 1
            said = str(error)
            if "\n" in said or not said.startswith(("config/", "--config: ")) or len(said) > 3_000:
                wrong.append((number, said[:300]))
            said.encode()
        except Exception as error:
            wrong.append((number, f"{type(error).__name__}: {str(error)[:200]}"))
        finally:
            signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
    assert not wrong, "\n".join(map(str, wrong))
    assert len(numbers) / 2 < refused < len(numbers), "mutants that all pass, or all fail alike, test nothing"


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    folder = clone(tmp_path_factory.mktemp("damaged"))
    borrow_environment(folder)
    return folder


@pytest.mark.parametrize("number", [3, *(pytest.param(n, marks=pytest.mark.slow) for n in REAL)])
def test_snakemake_itself_ends_in_the_same_line(copy, tmp_path, monkeypatch, number):
    for path in (copy / "config").glob("*.yaml"):
        shutil.copy2(ROOT / "config" / path.name, path)
    paths = damaged(copy, number)
    monkeypatch.chdir(copy)
    expected = None
    try:
        read(paths)
    except UserError as error:
        expected = f"error: {error}"
    start = time.monotonic()
    done = snakemake(copy, "-n", "report", configs=map(str, paths), check=False, wrapper=True)
    assert time.monotonic() - start < 6 * LIMIT  # Snakemake plans every job of a config that is sound
    said = done.stdout + done.stderr
    assert "Traceback" not in said
    if expected:
        assert done.returncode == 1 and said.splitlines()[-1] == expected
    else:
        assert done.returncode == 0, said[-2000:]
