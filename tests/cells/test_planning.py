"""Planning stays light: it imports neither torch nor Snakemake, and completes a row once for all its seeds."""

import subprocess
import sys

from broken import CONFIG_YAML, QUESTIONS_YAML, ROOT

from projected_grpo.cells import cell as cells
from projected_grpo.cells.config import Config
from projected_grpo.cells.presets import Grpo

HEAVY = {"torch", "snakemake", "transformers", "pandas", "jsonschema", "openai"}


def test_config_and_questions_are_read_without_heavy_libraries():
    text = """
import sys, projected_grpo.commands.schemas
from projected_grpo.cells.cell import all_cells, load_questions
from projected_grpo.cells.check import load
from projected_grpo.strict_yaml import read_mapping
config, questions = load(["config/config.yaml"], read_mapping("config/config.yaml"))
assert all_cells(load_questions(questions, config))
print(*{name.partition(".")[0] for name in sys.modules})"""
    done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not HEAVY & set(done.stdout.split())


def test_a_row_is_completed_once_however_many_seeds_it_has(monkeypatch):
    calls = []
    training = Grpo.training
    monkeypatch.setattr(Grpo, "training", lambda *of: calls.append(of) or training(*of))
    found = {}
    for seeds in (1, 20):
        config = Config.model_validate(CONFIG_YAML | {"seeds": seeds})
        calls.clear()
        found[seeds] = len(cells.all_cells(cells.load_questions(QUESTIONS_YAML, config))), len(calls)
    assert found[20][1] == found[1][1] and found[20][0] > 10 * found[1][0]
