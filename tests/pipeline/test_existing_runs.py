"""Tables, figures and report of what is there, by the pipeline itself: nothing is trained, the rest is named."""

import re

import yaml
from synthetic import real_questions, write_run
from workspace import clone, snakemake

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
    given, configs = ("--config", "seeds=[41,42]"), ("config/config.yaml",)
    done = snakemake(tree, "results/Q10.md", "reports/paper.html", *given, "runs=existing", configs=configs)
    jobs = set(re.findall(r"^(?:local)?rule (\w+):", done.stdout + done.stderr, re.M))
    assert jobs == {"question", "figures", "self_check", "report"}
    table = (tree / "results/Q10.md").read_text()
    assert f"Left out: `{MISSING}` (missing)." in table
    assert re.search(r"^\| moral \|.* 1 \| 41 \|$", table, re.M)
    assert re.search(r"^\| own_mode \|.* 2 \| 41, 42 \|$", table, re.M)
    page = (tree / "reports/paper.html").read_text()
    assert f"<code>{MISSING}</code> (missing)" in page and 'id="run-erase-own_mode-m0.125-s42"' in page
    # Without it, the missing run is what the pipeline wants to make.
    whole = snakemake(tree, "results/Q10.md", "-n", *given, configs=configs)
    assert f"wildcards: cell={MISSING}" in whole.stdout + whole.stderr


def test_the_exploit_matrix_is_a_figure_of_its_own(tmp_path):
    tree = clone(tmp_path / "tree")
    page = tree / "results/grader/diagonal.md"
    page.parent.mkdir(parents=True)
    page.write_text("# T\n\n| submission | a | b |\n|---|---|---|\n| x | 6/6 | 0/6 |\n| y | 0/6 | 3/6 |\n")
    given = ("--config", "seeds=1")
    planned = snakemake(tree, "reports/paper.html", "-n", *given, configs=("config/config.yaml",))
    assert re.search(r"^grader_matrix +1$", planned.stdout + planned.stderr, re.M)
    snakemake(tree, "results/figures/diagonal", *given, configs=("config/config.yaml",))
    assert ">0.50<" in (tree / "results/figures/diagonal/matrix.svg").read_text()
