"""The workflow as a module of another one, in a folder that holds a config and nothing else of it."""

import shutil
import subprocess
import sys

from workspace import JOB, ROOT

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


def test_another_workflow_plans_its_rules_under_names_of_its_own(tmp_path):
    shutil.copytree(ROOT / "config", tmp_path / "config")
    (tmp_path / "Snakefile").write_text(OUTER.format(root=ROOT))
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "-n", "--cores", "1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    jobs = dict(JOB.findall(done.stdout + done.stderr))
    assert jobs.pop("mine") == "1" and jobs.pop("total")
    assert {"hack_base", "hack_teacher_pool", "hack_grpo", "hack_verdict"} <= set(jobs)
    assert all(name.startswith("hack_") for name in jobs)
