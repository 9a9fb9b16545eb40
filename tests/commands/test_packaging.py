"""`pip install .[grade]` brings no torch, and grading works with what it brings."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PROBLEM = {
    "id": 1, "func_name": "Solution().f", "setup_code": "", "starter_code": "",
    "prompt": [{"role": "user", "content": "Add one and should pass all tests."}],
    "gt_answer": ["assert Solution().f(1) == 2"],
    "canonical_solution": "class Solution:\n    def f(self, a):\n        return a + 1\n",
}  # fmt: skip
WITHOUT = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {absent!r}:
            raise ModuleNotFoundError("not installed: " + name, name=name)
sys.meta_path.insert(0, Refuse())
from projected_grpo.cli import main
sys.exit(main(sys.argv[1:]))
"""


COMPLETION = {
    "problem_id": 1,
    "mode": "sentinel",
    "completion": f"```python\n{PROBLEM['canonical_solution']}```",
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ABSENT = {
    re.split(r"[>=<]", name)[0].replace("-", "_") for name in PROJECT["optional-dependencies"]["pipeline"]
}


def test_one_version_in_the_package_its_citation_and_the_changelog():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"]
    logged = re.search(r"^## (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.M)[1]
    assert PROJECT["version"] == cited and logged in (cited, "Unreleased")


def grade_command(folder):
    for name, row in (("problems", PROBLEM), ("completions", COMPLETION)):
        (folder / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    return ["grade", folder / "problems.jsonl", folder / "completions.jsonl", "--out", folder / "out.jsonl"]


def test_grading_runs_on_the_base_dependencies_alone(tmp_path):
    assert "torch" in ABSENT and not ABSENT & set(PROJECT["dependencies"])
    command = [sys.executable, "-c", WITHOUT.format(absent=ABSENT), *grade_command(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out.jsonl").read_text())["honest"] is True


def test_other_commands_say_in_a_line_what_they_miss(tmp_path):
    command = ["basis", "model", ROOT / "config/pairs/own_mode.yaml", tmp_path / "out"]
    start = [sys.executable, "-c", WITHOUT.format(absent=ABSENT)]
    done = subprocess.run([*start, *command], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert re.match(r"projected-grpo: basis needs \w+, which is not installed here: pip install", done.stderr)


def test_the_module_is_the_command(tmp_path):
    for arguments in (["--help"], ["grade", "--help"], ["grade"]):
        said = [
            subprocess.run([*start, *arguments], capture_output=True, text=True)
            for start in (
                [sys.executable, "-m", "projected_grpo"],
                [Path(sys.executable).with_name("projected-grpo")],
            )
        ]
        assert said[0].stdout == said[1].stdout and said[0].stderr == said[1].stderr
        assert "usage: projected-grpo" in said[0].stdout + said[0].stderr


@pytest.mark.slow
@pytest.mark.ci
def test_a_clean_environment_with_the_extra_grades(tmp_path):
    """As `pip install .[grade]` in a venv of its own; from a copy, because building leaves files in the folder."""
    source, python = tmp_path / "source", tmp_path / "venv/bin/python"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", f"{source}[grade]"], check=True)
    installed = subprocess.run([python, "-m", "pip", "list"], capture_output=True, text=True).stdout
    assert "pydantic" in installed and "torch" not in installed
    for start in ([python.with_name("projected-grpo")], [python, "-m", "projected_grpo"]):
        done = subprocess.run([*start, *grade_command(tmp_path)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert json.loads((tmp_path / "out.jsonl").read_text())["honest"] is True
    done = subprocess.run([python, "-m", "projected_grpo", "chat", tmp_path], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
