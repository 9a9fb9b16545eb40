"""Which pages there are, what hangs on whose code, and that planning waits for no drawing library."""

import subprocess
import sys

from synthetic import ROOT, context_of

from projected_grpo.fingerprint import closure
from projected_grpo.verdicts import registry

SPECIAL = {
    "aa",
    "probe",
    "critic",
    "critic_grid",
    "substrate",
    "grader",
}


def code_of(path):
    return {file.name: file.parent.name for file in closure(path) if file.suffix == ".py"}


def test_every_page_has_its_file_and_each_file_its_page(tmp_path):
    context = context_of("", tmp_path, [41])
    found = registry.pages(context.config, context.questions)
    assert list(found)[:2] == ["Q1", "Q2"] and set(found.values()) == {"table", *SPECIAL}
    assert found["R6"] == "table" and found["probe/uat"] == "probe"
    for module in set(found.values()):
        assert callable(registry.load(module).make)
    without = context.config.model_copy(
        update={"self_taught": context.config.self_taught.model_copy(update={"critic": "none"})}
    )
    assert "self_taught" not in registry.pages(without, context.questions)


def test_a_measure_trains_nothing_and_a_verdict_remakes_its_own_page():
    assert not {"measures", "pages", "verdicts"} & set(code_of(ROOT / "workflow/scripts/grpo.py").values())
    shared = code_of(ROOT / "workflow/scripts/verdict.py") | code_of(registry.file("table"))
    assert shared["table.py"] == "verdicts" and shared.get("context.py") == "pages"
    assert not {f"{module}.py" for module in SPECIAL} & {
        name for name, floor in shared.items() if floor == "verdicts"
    }
    assert code_of(registry.file("aa"))["measure.py"] == "measures"


def test_planning_a_table_draws_nothing():
    heavy = ("matplotlib", "scipy", "pandas")
    code = f"import projected_grpo.verdicts.registry, sys; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT / "src")
    assert done.stdout.strip() == "[]", done.stderr
