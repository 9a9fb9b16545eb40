"""A results tree of made-up runs with the pages of some questions and stages, for tests of report and publishing."""

import html
from dataclasses import replace

import pandas as pd
import shipped
import yaml
from synthetic import ROOT, write_run

from projected_grpo.cells.config import Config
from projected_grpo.files import write_json
from projected_grpo.pages import grader, registry
from projected_grpo.pages.context import Context
from projected_grpo.pages.page import Page, write

SHOWN = ("Q2", "Q10", "Q12", "Q14", "R7", "aa")
COUNTS = {"x": {"a": [6, 0, 6], "b": [0, 0, 6]}, "y": {"a": [0, 0, 6], "b": [3, 6, 6]}}
EVIL = "<img src=x onerror=alert(1)> `<b>` {{ 7*7 }}"


def make_results(root, names, seeds):
    """Write made-up runs and pages of some questions below `root`; return what a page of them is made of."""
    asked = shipped.questions()
    (root / "questions.yaml").write_text(yaml.safe_dump({name: asked[name] for name in names or asked}))
    config = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    config |= {"seeds": seeds, "results": str(root / "results"), "questions": str(root / "questions.yaml")}
    made = Context.read("", Config.model_validate(config))
    for name, question in made.questions.items():
        context = replace(made, name=name)
        for cell in question.cells:
            if not (context.results / "grpo" / cell.id).exists():
                write_run(context.results, cell)
        write(registry.load("aa" if question.kind == "aa" else "question").make(context), context.results)
    return made


def standing(name, title, text="Text.", banner=""):
    """Return a page that is no question's."""
    above = f"> **{banner}**\n\n" if banner else ""
    return Page(name, f"# {title}\n\n{above}{text}\n", {}, {".parquet": pd.DataFrame({"a": [1]})})


def make_tree(root):
    """A results tree of some questions at two seeds, with figures and pages of other stages."""
    made = make_results(root, SHOWN, 2)
    write_json(made.results / "grader/matrix.json", {"sandbox": "namespaces", "counts": COUNTS})
    write(grader.make(replace(made, name="grader/diagonal")), made.results)
    write(standing("substrate", "Model"), made.results)
    write(standing("self_taught", "Critic", f"<pre>{html.escape(EVIL)}</pre>"), made.results)
    return made
