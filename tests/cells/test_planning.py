"""Planning stays light: it imports neither torch nor Snakemake, and takes no time to speak of."""

import subprocess
import sys
import time

import pytest
from broken import CONFIG_YAML, QUESTIONS_YAML, ROOT

from projected_grpo.cells import cell as cells
from projected_grpo.cells.config import Config

HEAVY = {"torch", "snakemake", "transformers", "pandas", "jsonschema", "openai"}


def test_config_and_questions_are_read_without_heavy_libraries():
    text = """
import sys, projected_grpo.cells.schemas
from projected_grpo.cells.cell import all_cells, load_questions
from projected_grpo.cells.check import load
from projected_grpo.strict_yaml import read_mapping
config, questions = load(["config/config.yaml"], read_mapping("config/config.yaml"))
assert all_cells(load_questions(questions, config))
print(*{name.partition(".")[0] for name in sys.modules})"""
    done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not HEAVY & set(done.stdout.split())


@pytest.mark.slow
def test_the_most_seeds_that_a_config_may_ask_for_are_expanded_in_seconds():
    config = Config.model_validate(CONFIG_YAML | {"seeds": 200})
    start = time.process_time()
    found = cells.all_cells(cells.load_questions(QUESTIONS_YAML, config))
    assert len(found) > 10_000 and time.process_time() - start < 10
