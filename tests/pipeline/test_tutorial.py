"""docs/tutorial.md: every command is run as it stands there, and says what stands below it, but for its numbers."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from workspace import ROOT, borrow_environment, clone

PAGE = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
SCRIPT = re.search(r"```python\n(.*?)```\n", PAGE, re.S)[1]
BLOCKS = [
    (kind, re.sub(r"^    ", "", block, flags=re.M).strip())
    for kind, block in re.findall(r"```(console|text)\n(.*?)```", PAGE, re.S)
]


def calls() -> list[tuple[str, list[str], str]]:
    """Return (command, lines that it prints, the answer that the page quotes from its end) in order."""
    found = []
    for kind, block in BLOCKS:
        if kind == "text":
            found[-1] = (*found[-1][:2], block)
            continue
        for call in re.split(r"^\$ ", block, flags=re.M)[1:]:
            found.append((call.split("\n")[0], call.split("\n")[1:], ""))
    return found


CALLS = calls()


def masked(line: str) -> str:
    """Return a line without its numbers, units of time and spaces: these are the machine's and the run's."""
    return re.sub(r"\s+", " ", re.sub(r"[+-]?\d[\d.:]*( min| s\b| h)?", "N", line)).strip()


def said(folder: Path, command: str) -> list[str]:
    done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
    return (done.stdout + done.stderr).splitlines()


def test_the_pairs_of_the_page_are_what_the_check_says(tmp_path):
    (tmp_path / "mine.py").write_text(SCRIPT)
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    checks = [call for call in CALLS if call[0].startswith((".venv/bin/", "mkdir"))]
    assert len(checks) == 3
    for command, shown, _ in checks:
        assert [line for line in said(tmp_path, command) if line.strip()] == [s for s in shown if s]


# As many jobs as the page has, each as small as in config/smoke.yaml: what it prints differs in its numbers alone.
SMALL = """
small: { base: 600, teacher: 200 }
pool: { problems: 8, samples: 4 }
grpo: { prompts: 4, presets: { fast: { steps: 3 } } }
"""


@pytest.mark.slow
def test_every_command_of_the_page_runs_and_says_what_stands_below_it(tmp_path):
    root = clone(tmp_path / "clone")
    borrow_environment(root)
    (root / ".venv/bin/projected-grpo").symlink_to(Path(sys.executable).with_name("projected-grpo"))
    (root / "mine.py").write_text(SCRIPT)
    demo = root / "config/demo.yaml"
    demo.write_text(demo.read_text() + SMALL)
    assert len(CALLS) >= 6
    assert sum(bool(answer) for *_, answer in CALLS) == 2
    for command, shown, answer in CALLS:
        printed = said(root, command)
        lines = {masked(line) for line in printed}
        for line in filter(None, shown):
            assert masked(line) in lines, (command, line, sorted(lines))
        assert masked(answer) in masked("\n".join(printed)), (command, answer, printed[-5:])
