"""`pip install .[grade]` brings no torch, and grading works with what it brings."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

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
            raise ImportError("not installed: " + name)
sys.meta_path.insert(0, Refuse())
from projected_grpo.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_grading_runs_on_the_base_dependencies_alone(tmp_path):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    absent = {
        re.split(r"[>=<]", name)[0].replace("-", "_") for name in project["optional-dependencies"]["pipeline"]
    }
    assert "torch" in absent and not absent & set(project["dependencies"])
    completion = "```python\n" + PROBLEM["canonical_solution"] + "```"
    rows = {
        "problems": PROBLEM,
        "completions": {"problem_id": 1, "mode": "sentinel", "completion": completion},
    }
    for name, row in rows.items():
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    command = [sys.executable, "-c", WITHOUT.format(absent=absent), "grade"]
    command += [tmp_path / "problems.jsonl", tmp_path / "completions.jsonl", "--out", tmp_path / "out.jsonl"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out.jsonl").read_text())["honest"] is True
