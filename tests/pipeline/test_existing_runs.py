"""Tables, figures and report of what is there, by the pipeline itself: nothing is trained, the rest is named."""

import re

import pandas as pd
import yaml
from synthetic import real_questions, write_run
from workspace import borrow_environment, clone, planned, snakemake

from projected_grpo.files import write_json

MISSING = "erase-moral-m0.125-s42"
ASKED = ("Q10", "aa")


def test_existing_runs_make_pages_of_what_is_there_and_names_the_rest(tmp_path):
    tree = clone(tmp_path / "tree")
    path = tree / "config/questions.yaml"
    asked = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({name: asked[name] for name in ("$schema", *ASKED)}))
    _, questions = real_questions([41, 42])
    for name in ASKED:
        for cell in questions[name].cells:
            if cell.id != MISSING:
                write_run(tree / "results", cell)
    given, configs = ("--config", "seeds=2"), ("config/config.yaml",)
    done = snakemake(tree, "results/Q10.md", "reports/paper.html", *given, "runs=existing", configs=configs)
    jobs = set(re.findall(r"^(?:local)?rule (\w+):", done.stdout + done.stderr, re.M))
    assert jobs == {"question", "verdict", "report"}
    table = (tree / "results/Q10.md").read_text()
    assert f"{MISSING} (missing)" in table  # and why
    frame = pd.read_parquet(tree / "results/Q10.parquet").set_index("row")
    assert frame.loc["moral", "seeds"] == "41" and frame.loc["own_mode", "seeds"] == "41;42"
    page = (tree / "reports/paper.html").read_text()
    assert f"<code>{MISSING}</code>" in page and 'id="run-erase-own_mode-m0.125-s42"' in page
    # Without it, the missing run is what the pipeline wants to make.
    whole = snakemake(tree, "results/Q10.md", "-n", *given, configs=configs)
    assert f"wildcards: cell={MISSING}" in whole.stdout + whole.stderr


def test_an_r_page_of_existing_runs_is_made_of_what_is_there(tmp_path):
    tree = clone(tmp_path / "tree")
    _, questions = real_questions([41])
    for name in ("R5", "R7"):
        for cell in questions[name].cells:
            write_run(tree / "results", cell)
    given = {"config": ["--config", "seeds=1", "runs=existing"], "configs": ("config/config.yaml",)}
    for page in ("R5", "R7"):  # the replays of R7 are not there: it has no T4 then
        assert planned(tree, f"results/{page}.md", **given)[0] == {"question": 1}
    report, _ = planned(tree, "reports/paper.html", **given)  # with every question of the repository
    assert report["report"] == 1 and report["question"] > 20


def test_a_call_ends_with_the_page_that_it_made_whatever_its_name(tmp_path):
    """Of a config without Q10, and of the report, which is no page of a question."""
    tree = clone(tmp_path / "tree")
    path = tree / "config/questions-tuning.yaml"
    asked = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({name: asked[name] for name in ("$schema", "leak10")}))
    borrow_environment(tree)
    call = {"configs": ("config/tuning.yaml",), "wrapper": True}
    for target, made in (((), "results/tuning/leak10.md"), (("report",), "reports/tuning.html")):
        said = snakemake(tree, *target, "--config", "seeds=1", "runs=existing", **call).stderr
        assert said.splitlines()[-2].startswith(made), said[-2000:]


def test_the_graders_page_is_made_of_what_its_check_measured(tmp_path):
    tree = clone(tmp_path / "tree")
    counts = {"x": {"a": [6, 0, 6], "b": [0, 0, 6]}, "y": {"a": [0, 0, 6], "b": [3, 0, 6]}}
    write_json(tree / "results/grader/matrix.json", {"sandbox": "namespaces", "counts": counts})
    given = {"config": ["--config", "seeds=1", "runs=existing"], "configs": ("config/config.yaml",)}
    snakemake(tree, "results/grader/diagonal.md", *given["config"], configs=given["configs"])
    assert "| y | 0/6 | 3/6 | 0/12 |" in (tree / "results/grader/diagonal.md").read_text()
    assert ">50<" in (tree / "results/figures/grader/diagonal/matrix.svg").read_text()
