"""Which pages there are, in the order of the report, and the file of this folder that makes each.

A question's page is made by `question.py`, that of the pipeline against itself by `aa.py`.
"""

import importlib
from pathlib import Path
from types import ModuleType

from projected_grpo.cells.cell import Question
from projected_grpo.cells.config import Config
from projected_grpo.evaluator.kinds import critic_kinds

STANDING = {
    "probe/uat": "probe",
    "self_taught": "critic",
    "self_taught_grid": "critic_grid",
    "substrate": "substrate",
    "grader/diagonal": "grader",
}


def pages(config: Config, questions: dict[str, Question]) -> dict[str, str]:
    """Return page -> its module."""
    order = {"aa": 1, "probe": 3}
    found = [
        (order.get(question.kind, 0), name, "aa" if question.kind == "aa" else "question")
        for name, question in questions.items()
    ]
    there = {"self_taught": config.self_taught.critic != "none", "substrate": config.is_small}
    there["self_taught_grid"] = len(critic_kinds(config)) > 1
    standing = {name: module for name, module in STANDING.items() if there.get(name, True)}
    found += [(2 if name == "probe/uat" else 4, name, module) for name, module in standing.items()]
    return {name: module for _, name, module in sorted(found, key=lambda one: one[0])}


def file(module: str) -> Path:
    """Return a page's file: editing one reruns its own page alone."""
    return Path(__file__).with_name(f"{module}.py")


def load(module: str) -> ModuleType:
    """Import a page's file by name; it draws, which rules that only plan need not wait for."""
    return importlib.import_module(f"{__package__}.{module}")
