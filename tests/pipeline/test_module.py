"""The workflow as a module of another one, in a folder that holds a config and nothing else of it."""

import shutil
import subprocess
import sys

from workspace import JOB, ROOT

from projected_grpo.files import read_jsonl

OUTER = """
configfile: "config/config.yaml"
configfile: "config/smoke.yaml"


module hack:
    snakefile:
        "{root}/Snakefile"
    config:
        config


use rule * from hack as hack_*


rule mine:
    default_target: True
    input:
        "results/smoke/Q10.md",
"""


def outer(folder, *arguments):
    shutil.copytree(ROOT / "config", folder / "config")
    (folder / "Snakefile").write_text(OUTER.format(root=ROOT))
    call = [sys.executable, "-m", "snakemake", "--cores", "1", *arguments]
    done = subprocess.run(call, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_another_workflow_plans_its_rules_under_names_of_its_own(tmp_path):
    jobs = dict(JOB.findall(outer(tmp_path, "-n")))
    assert jobs.pop("mine") == "1" and jobs.pop("total")
    assert {"hack_base", "hack_teacher_pool", "hack_grpo", "hack_question"} <= set(jobs)
    assert all(name.startswith("hack_") for name in jobs)


def test_another_workflow_makes_a_file_in_its_own_folder(tmp_path):
    made = "results/smoke/models/small-s41/problems.jsonl.gz"
    outer(tmp_path, made)
    assert len(list(read_jsonl(tmp_path / made))) >= 8
    assert any(path.is_file() for path in (tmp_path / "results/smoke/records").rglob("*"))
