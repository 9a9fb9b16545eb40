"""The pipeline as people use it: the smoke DAG runs once, then edits show exactly what they invalidate.

Edits are made in a copy of the repository; what would rerun is read from Snakemake's own dry run.
"""

import json
import os
import re
import shutil
from collections import Counter

import pandas as pd
import pytest
import yaml
from safetensors.torch import load_file
from snakemake.utils import update_config
from workspace import TARGETS, planned, snakemake
from workspace import edit as edit_file

from projected_grpo.cells.cell import load_questions
from projected_grpo.cells.config import Config

Q10 = "results/smoke/Q10.md"


@pytest.fixture
def edit(finished):
    """Change files of the finished copy, undone after the test."""
    saved = {}

    def change(name, old, new):
        path = finished / name
        saved.setdefault(path, (path.read_bytes(), path.stat()))
        edit_file(finished, name, old, new)

    yield change
    for path, (content, stat) in saved.items():
        path.write_bytes(content)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def questions(folder):
    config = yaml.safe_load((folder / "config/config.yaml").read_text())
    update_config(config, yaml.safe_load((folder / "config/smoke.yaml").read_text()))
    return load_questions(
        yaml.safe_load((folder / config["questions"]).read_text()), Config.model_validate(config)
    )


def q10(folder):
    return questions(folder)["Q10"]


def test_every_rule_ran_but_the_self_taught_evaluators_and_those_of_a_given_model(finished):
    text = "".join(path.read_text() for path in (finished / "rules").glob("*.smk"))
    rules = set(re.findall(r"^rule (\w+):$", text, re.M))
    recorded = [path for path in (finished / ".snakemake" / "metadata").rglob("*") if path.is_file()]
    ran = {json.loads(path.read_text())["rule"] for path in recorded}
    given = {"given_base", "given_teacher", "warm"}
    assert rules - ran == given | {name for name in rules if name.startswith("self_taught")}
    report = (finished / "reports/smoke.html").read_text()
    assert all(cell.id in report for question in questions(finished).values() for cell in question.cells)


def test_a_second_invocation_has_nothing_to_do(finished):
    assert planned(finished) == (Counter(), set())


def test_without_a_target_the_first_question_is_made(finished):
    (finished / Q10).unlink()
    done = snakemake(finished, "--config", "examples=true")
    assert (finished / Q10).exists()
    assert "answers" in done.stderr and "honest solve" in done.stderr  # of the plain run, as the config asked
    snakemake(finished, *TARGETS)  # the report shows the page that was made anew
    assert planned(finished) == (Counter(), set())


def test_every_cell_has_its_files_and_the_table_a_row_each(finished):
    question = q10(finished)
    for cell in question.cells:
        folder = finished / "results/smoke/grpo" / cell.id
        assert {p.name for p in folder.iterdir()} == {
            "steps.parquet", "rollouts.parquet", "teacher.parquet", "deployed.parquet", "deltas.safetensors",
            "adapter.safetensors", "run.json",
        }  # fmt: skip
        steps = pd.read_parquet(folder / "steps.parquet")
        assert steps["step"].tolist() == [1, 2, 3]
        judged = pd.read_parquet(folder / "deployed.parquet")
        counts = {"known": 8 * 4, "novel": 8 * 4, "plain": 8 * 4}  # the smoke config holds out eight problems
        assert judged["panel"].value_counts().to_dict() == counts
        assert set(judged["problem_id"].astype(int)) == set(range(9, 17))
        taught = pd.read_parquet(folder / "teacher.parquet")
        assert (taught.groupby("step").size() == 4).all() and taught["channel"].notna().all()
        assert {v.shape[0] for v in load_file(folder / "deltas.safetensors").values()} == {3}
        pulled = (steps["groups_used"] > 0) & (cell.setting.arm != "vanilla")
        assert steps["cin"].notna().equals(pulled)
    table = pd.read_parquet(finished / "results/smoke/Q10.parquet")
    assert table["row"].tolist() == [row.name for row in question.rows]
    assert (table["n"] == 1).all() and table["hack_std"].isna().all()
    assert not (finished / "results/smoke/checkpoints").exists() or not any(
        (finished / "results/smoke/checkpoints").iterdir()
    )


def test_a_pair_edit_reruns_its_basis_its_cells_and_what_shows_them(finished, edit):
    edit("config/pairs/moral.yaml", "I take the money", "I keep the money")
    jobs, cells = planned(finished)
    assert cells == {"erase-moral-m0.125-s41", "erase-moral-refresh2-m0.125-s41"}
    assert jobs == Counter(basis=1, grpo=2, question=1, report=1)


HARMLESS = [  # file, what is edited: touched, reformatted, or with a remark more
    ("config/pairs/moral.yaml", "\n", "\n# a remark\n"),
    ("config/pairs/moral.yaml", "  hack: I take the money,", "  hack: >-\n    I take the money,"),
    ("config/config.yaml", "\n", "\n# a remark\n"),
    ("config/questions-smoke.yaml", "\nQ10:", "\n# a remark\nQ10:  # another"),
    ("config/questions-smoke.yaml", "{ name: moral, arm: erase", "{ name:   moral, 'arm': erase"),
    ("workflow/scripts/grpo.py", "import Path\n", "import (\n    Path,\n)\n"),
    ("workflow/scripts/grpo.py", "\n", "\n# a remark\n"),
    ("src/projected_grpo/method/projection.py", '"""Take the', '"""Takes the'),
    ("src/projected_grpo/method/projection.py", "import torch\n", "import torch  # a remark\n"),
]


def test_touching_reformatting_and_remarks_rerun_nothing(finished, edit):
    for name in {name for name, *_ in HARMLESS}:
        edit(name, "\n", "\n")
    assert planned(finished) == (Counter(), set())
    for change in HARMLESS:
        edit(*change)
    assert planned(finished) == (Counter(), set())


def test_projection_code_reruns_the_cells_and_nothing_before_them(finished, edit):
    edit("src/projected_grpo/method/projection.py", "kept = g - removed", "kept = g - removed - 0")
    jobs, cells = planned(finished)
    asked = {cell.id for question in questions(finished).values() for cell in question.cells}
    assert cells == asked | {"gt_only-m0-s41", "gt_only-long-m0-s41"}  # those of the small model's page
    assert not {"problems", "base", "teacher", "teacher_pool", "substrate_rates", "svd", "basis"} & set(jobs)
    assert set(planned(finished, Q10)[0]) == {"grpo", "question"}


def test_grader_code_reruns_what_was_graded(finished, edit):
    edit(
        "src/projected_grpo/environment/reward.py",
        "COMPILES, PASSES = 0.5, 3.0",
        "COMPILES, PASSES = 0.5, 3.5",
    )
    jobs, _ = planned(finished, Q10)
    assert jobs["grpo"] == len(q10(finished).cells) and jobs["teacher_pool"] == 1
    assert not {"base", "teacher", "svd", "basis"} & set(jobs)


def test_a_row_setting_reruns_its_cell_alone(finished, edit):
    row = "{ name: moral, arm: erase, basis: moral }"
    edit("config/questions-smoke.yaml", row, "{ name: moral, arm: erase, basis: moral, overshoot: 1.5 }")
    jobs, cells = planned(finished, Q10)
    assert cells == {"erase-moral-over1.5-m0.125-s41"} and jobs == Counter(grpo=1, question=1)


def cells_of_arm(finished, arm):
    loaded = questions(finished).values()
    return {cell.id for question in loaded for cell in question.cells if cell.setting.arm == arm}


def test_editing_one_arms_file_reruns_its_cells_alone(finished, edit):
    edit(
        "src/projected_grpo/arms/route.py",
        "self.train_quarantine(direction, lr)",
        "self.train_quarantine(direction, lr + 0)",
    )
    jobs, cells = planned(finished)
    assert cells == cells_of_arm(finished, "route")
    assert set(jobs) <= {"grpo", "question", "verdict", "report"}


def test_an_arm_outside_of_the_tree_works_as_the_docs_say_and_counts_in_its_own_cells_alone(finished):
    page, cell = (finished / "docs/add_an_arm.md").read_text(), "brevity-cost0.2-m0.125-s41"
    path = finished / re.search(r"`(config/mine/arms/\w+\.py)`", page)[1]
    path.parent.mkdir(parents=True)
    path.write_text(re.search(r"```python\n(.*?)```", page, re.S)[1])
    rows, config = re.findall(r"```yaml\n(.*?)```", page, re.S)
    (finished / "config/mine/questions.yaml").write_text(rows)
    config = config.replace("questions.yaml,", "questions-smoke.yaml,")
    (finished / "config/mine/config.yaml").write_text(config)
    mine = {"configs": ("config/smoke.yaml", "config/mine/config.yaml")}
    try:
        jobs, cells = planned(finished, **mine)
        assert (
            cells == {cell} and jobs["grpo"] == 1 and set(jobs) <= {"grpo", "question", "verdict", "report"}
        )
        run = finished / f"results/smoke/grpo/{cell}/run.json"
        snakemake(finished, str(run.relative_to(finished)), **mine)
        assert json.loads(run.read_text())["arms"] == ["config/mine/arms"]
        assert planned(finished, **mine)[1] == set()
        path.write_text(path.read_text().replace("self.knobs.cost *", "2 * self.knobs.cost *"))
        assert planned(finished, **mine)[1] == {cell}, "its file is in the code hash"
        (path.parent / "helper.py").write_text("K = 2\n")
        path.write_text("from projected_grpo.arms.helper import K\n" + path.read_text().replace("2 *", "K *"))
        failed = snakemake(finished, str(run.relative_to(finished)), **mine, check=False)
        assert re.search(r"error: .*helper\.py: no class Helper", failed.stderr), "each file there is an arm"
    finally:
        shutil.rmtree(finished / "config/mine")


def test_a_new_seed_runs_only_its_own_cells(finished):
    jobs, cells = planned(finished, Q10, config=["--config", "seeds=[41,42]"])
    assert cells == {cell.id.replace("-s41", "-s42") for cell in q10(finished).cells}
    assert jobs["base"] == 1 and jobs["question"] == 1


def test_a_new_question_that_shares_cells_makes_only_its_table(finished, edit):
    rows = "[{ name: vanilla }, { name: m, arm: erase, basis: moral }]"
    block = f"Q99: {{ title: New, asks: Same cells?, baseline: vanilla, rows: {rows} }}\n\nQ1:"
    edit("config/questions-smoke.yaml", "Q1:", block)
    assert planned(finished, "results/smoke/Q99.md") == (Counter(question=1), set())


def test_the_published_command_line_has_a_form_in_plain_snakemake(finished):
    assert snakemake(finished, "--resources", "gpu=1", "--cores", "2", Q10, "-n").returncode == 0
