"""Which pages there are, what hangs on whose code, and that planning waits for no drawing library."""

import re
import subprocess
import sys

from synthetic import ROOT, context_of

from projected_grpo.fingerprint import closure
from projected_grpo.pages import registry
from projected_grpo.pages.needs import NEEDS

SPECIAL = {"aa", "probe", "critic", "critic_grid", "substrate", "grader"}


def code_of(path):
    return {file.name: file.parent.name for file in closure(path) if file.suffix == ".py"}


def test_every_page_has_its_file_and_each_file_its_page(tmp_path):
    context = context_of("", tmp_path, [41])
    found = registry.pages(context.config, context.questions)
    assert list(found)[:2] == ["Q1", "Q2"] and set(found.values()) == {"question", *SPECIAL}
    assert found["R6"] == "question" and found["probe/uat"] == "probe"
    assert set(found.values()) == set(NEEDS)
    for module in set(found.values()):
        assert callable(registry.load(module).make)
    untaught = context.config.self_taught.model_copy(update={"critic": "none"})
    without = context.config.model_copy(update={"self_taught": untaught})
    assert "self_taught" not in registry.pages(without, context.questions)


def test_a_measure_trains_nothing_and_a_verdict_remakes_its_own_page():
    assert not {"measures", "pages"} & set(code_of(ROOT / "workflow/scripts/grpo.py").values())
    shared = code_of(ROOT / "workflow/scripts/verdict.py") | code_of(registry.file("question"))
    assert shared["question.py"] == "pages" and shared.get("context.py") == "pages"
    pages = {name for name, floor in shared.items() if floor == "pages"}
    assert not {f"{module}.py" for module in SPECIAL} & pages
    assert code_of(registry.file("aa"))["measure.py"] == "measures"


def test_planning_draws_nothing_and_tests_nothing():
    """All that rules import: else a second of each call, and of each job on a cluster, goes into what pages need."""
    rules = "".join(path.read_text() for path in (ROOT / "rules").rglob("*.smk"))
    imports = "\n".join(re.findall(r"^from projected_grpo.* import .+$", rules, re.M))
    heavy = ("matplotlib", "scipy", "pandas", "torch")
    code = f"{imports}\nimport sys; print([m for m in {heavy} if m in sys.modules])"
    assert "needs import NEEDS" in code
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT / "src")
    assert done.stdout.strip() == "[]", done.stderr
