"""The code behind published runs is that of their tag: no commit since changes the code hash of a rule that makes them.

The door for given models is no part of it and may go on refusing more: nothing behind a run imports it, and a table
takes only runs on one base, known by the digest of its folder.

`docs/results/frozen.txt` holds the tag and the hash of each rule's script with what it loads by name. Run as a script
with the name of a tag, this file writes it from today's code: `.venv/bin/python tests/pipeline/test_frozen.py v0.2.0`.
"""

import sys
from pathlib import Path

import pytest

from projected_grpo import arms
from projected_grpo.fingerprint import ROOT, closure, fingerprint

HERE = Path(__file__).resolve().parents[2]
FROZEN = HERE / "docs" / "results" / "frozen.txt"
SCRIPTS = HERE / "workflow" / "scripts"
# What stands between a config and a run's numbers, in the order of the rules.
BEHIND = (
    *("problems", "warm", "base", "teacher", "teacher_pool"),
    *("svd", "basis", "clean_run", "base_deployed", "grpo"),
)
DOOR = ("given_base", "given_teacher")
FAMILY = ROOT / "environment" / "families" / "oneliners" / "__init__.py"
MONITOR = ROOT / "evaluator" / "monitor.py"  # behind the runs whose monitor is the critic
OF_A_FAMILY = ("problems", "warm", "base", "teacher")
FREE = ("docs", "pages", "measures", "stages", "evaluator", "commands", "integrations")


def sources(rule: str) -> dict[str, list[Path]]:
    """Return the files that are hashed for a rule, by its name or, of runs, by rule and arm."""
    script = SCRIPTS / f"{rule}.py"
    if rule == "grpo":
        by_arm = {f"grpo {name}": [script, file] for name, file in arms.files().items()}
        return by_arm | {"grpo judged by the critic": [script, MONITOR]}
    return {rule: [script, *([FAMILY] if rule in OF_A_FAMILY else [])]}


def hashes() -> dict[str, str]:
    """Return the code hash of everything behind runs today."""
    every = {name: files for rule in BEHIND for name, files in sources(rule).items()}
    return {name: fingerprint(*files) for name, files in every.items()}


def test_no_commit_since_the_tag_changes_the_code_of_a_run():
    if not FROZEN.exists():
        pytest.skip("no published runs stand on a tag yet")
    tag, *lines = FROZEN.read_text().splitlines()
    frozen = dict(line.rsplit(" ", 1) for line in lines)
    changed = [name for name, digest in hashes().items() if frozen.get(name, digest) != digest]
    gone = frozen.keys() - hashes()
    assert not changed and not gone, f"published runs are of {tag}: {', '.join([*changed, *gone])}"


def test_nothing_behind_a_run_imports_the_door():
    files = {
        file for rule in BEHIND for named in sources(rule).values() for one in named for file in closure(one)
    }
    door = {
        *(ROOT / "model").glob("given*.py"),
        *(ROOT / "model" / name for name in ("door.py", "agreement.py")),
    }
    assert len(door) > 2 and not files & door


@pytest.mark.parametrize("rule", [*BEHIND, *DOOR])
def test_the_code_of_a_run_has_nothing_of_pages_measures_and_docs_in_it(rule):
    files = {file for named in sources(rule).values() for one in named for file in closure(one)}
    assert all(file.is_relative_to(ROOT) or file.parent == SCRIPTS for file in files)
    floors = {file.relative_to(ROOT).parts[0] for file in files if file.is_relative_to(ROOT)}
    allowed = {"clean_run": {"stages"}, "grpo": {"evaluator"}}.get(rule, set())
    assert not floors & set(FREE) - allowed, (rule, floors & set(FREE))


if __name__ == "__main__":
    FROZEN.write_text(
        "\n".join([sys.argv[1], *(f"{name} {digest}" for name, digest in hashes().items())]) + "\n"
    )
    print(f"wrote {FROZEN}")
