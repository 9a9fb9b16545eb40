"""Tables, figures and report of what is there, by the pipeline itself: nothing is trained, the rest is named."""

import re

import yaml
from synthetic import real_questions, write_run
from workspace import clone, planned, snakemake

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
    assert jobs == {"verdict", "report"}
    table = (tree / "results/Q10.md").read_text()
    assert f"**Left out:** `{MISSING}` (missing)." in table
    assert re.search(r"^\| moral \(against vanilla\) \|.* 1 \(41\) \|$", table, re.M)
    assert re.search(r"^\| own_mode \(against vanilla\) \|.* 2 \(41, 42\) \|$", table, re.M)
    page = (tree / "reports/paper.html").read_text()
    assert f"<code>{MISSING}</code> (missing)" in page and 'id="run-erase-own_mode-m0.125-s42"' in page
    # Without it, the missing run is what the pipeline wants to make.
    whole = snakemake(tree, "results/Q10.md", "-n", *given, configs=configs)
    assert f"wildcards: cell={MISSING}" in whole.stdout + whole.stderr


def test_an_r_page_of_existing_runs_is_made_where_all_it_needs_is_there(tmp_path):
    tree = clone(tmp_path / "tree")
    _, questions = real_questions([41])
    for name in ("R5", "R7"):
        for cell in questions[name].cells:
            write_run(tree / "results", cell)
    given = {"config": ["--config", "seeds=1", "runs=existing"], "configs": ("config/config.yaml",)}
    assert planned(tree, "results/R5.md", **given)[0] == {"verdict": 1}  # runs are all that it needs
    done = snakemake(tree, "results/R7.md", "-n", *given["config"], configs=given["configs"], check=False)
    assert done.returncode and "R7.md" in done.stdout + done.stderr  # its replays are not there


def test_the_graders_page_is_made_of_what_its_check_measured(tmp_path):
    tree = clone(tmp_path / "tree")
    counts = {"x": {"a": [6, 0, 6], "b": [0, 0, 6]}, "y": {"a": [0, 0, 6], "b": [3, 0, 6]}}
    write_json(tree / "results/grader/matrix.json", {"sandbox": "namespaces", "counts": counts})
    given = {"config": ["--config", "seeds=1", "runs=existing"], "configs": ("config/config.yaml",)}
    snakemake(tree, "results/grader/diagonal.md", *given["config"], configs=given["configs"])
    assert "| y | 0/6 | 3/6 | 0/12 |" in (tree / "results/grader/diagonal.md").read_text()
    assert ">0.50<" in (tree / "results/figures/grader/diagonal/matrix.svg").read_text()
