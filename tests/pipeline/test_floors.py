"""The library's floors: imports form no circle and never run upward."""

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

import projected_grpo

ROOT = Path(projected_grpo.__file__).parent
# From the ground up; a floor imports from itself and from those before it.
FLOORS = ("sandbox", "environment", "model", "method", "arms", "cells", "training", "stages", "evaluator")
FLOORS += ("measures", "pages", "commands", "integrations", "wrapper")


def modules():
    return {".".join(p.relative_to(ROOT).with_suffix("").parts): p for p in ROOT.rglob("*.py")}


def imported(path, known, typing=True):
    """The modules of the package that a file imports, wherever in it; without `typing`, those that it loads."""
    tree = ast.parse(path.read_text())
    if not typing:
        tree.body = [
            n for n in tree.body if not (isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test))
        ]
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            inner = name.removeprefix("projected_grpo.")
            if inner != name and inner in known:
                yield inner


def test_every_folder_is_a_floor():
    folders = {p.name for p in ROOT.iterdir() if p.is_dir() and any(p.glob("*.py"))}
    assert folders == set(FLOORS)


def test_imports_never_run_upward():
    known = modules()
    wrong = []
    for name, path in known.items():
        floor = name.split(".")[0]
        if floor not in FLOORS:
            continue  # beside the floors: entries and small helpers
        for other in imported(path, known):
            above = other.split(".")[0]
            if above in FLOORS and FLOORS.index(above) > FLOORS.index(floor):
                wrong.append(f"{name} -> {other}")
    assert not wrong


def test_imports_form_no_circle():
    known = modules()
    TopologicalSorter(
        {name: set(imported(path, known, typing=False)) - {name} for name, path in known.items()}
    ).prepare()


def test_the_mathematics_of_the_method_knows_no_model_and_no_pipeline():
    """What the integrations share with the pipeline loads neither transformers and PEFT nor our decoder."""
    known = modules()
    reached, found = {"method.projection", "method.basis", "method.adapter", "method.pairs"}, set()
    while reached:
        name = reached.pop()
        found.add(name)
        reached |= set(imported(known[name], known, typing=False)) - found
        assert not {"transformers", "peft"} & set(re.findall(r"import (\w+)", known[name].read_text())), name
    assert {name.split(".")[0] for name in found} <= {"method", "errors", "files", "strict_yaml", "templated"}
