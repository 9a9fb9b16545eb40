"""Base model -> teacher pool -> replay probe -> hack basis -> GRPO cells -> tables -> report."""

import os
import shlex
import sys

from snakemake.utils import min_version

min_version("9.0")
# Snakemake writes the path of its Python unquoted into shell commands; the wrapper sees to that.
if "PGRPO_RUN" not in os.environ and shlex.quote(sys.executable) != sys.executable:
    raise SystemExit(f"error: {sys.executable}: a blank in this path, start ./snakemake instead")


configfile: "config/config.yaml"


include: "rules/inputs/common.smk"
include: "rules/inputs/plan.smk"
include: "rules/inputs/given.smk"
include: "rules/inputs/teacher.smk"
include: "rules/inputs/basis.smk"
include: "rules/inputs/grpo.smk"
include: "rules/inputs/probe.smk"
include: "rules/inputs/verdict.smk"
include: "rules/inputs/self_taught.smk"


if CONFIG.runs == "make":

    include: "rules/substrate.smk"
    include: f"rules/{'small' if SMALL else 'given'}_base.smk"

    if CONFIG.model.warm:

        include: "rules/warm.smk"
    include: "rules/grader.smk"
    include: f"rules/{'small' if CONFIG.model.teacher == 'small' else 'given'}_teacher.smk"
    include: "rules/teacher.smk"
    include: "rules/basis.smk"
    include: "rules/probe.smk"
    include: "rules/grpo.smk"

    if CRITIC:

        include: "rules/self_taught.smk"


include: "rules/questions.smk"
include: "rules/report.smk"


FIRST = f"{RESULTS}/{'Q10' if 'Q10' in QUESTIONS else next(iter(QUESTIONS))}.md"


rule all:
    default_target: True
    input:
        FIRST,


# What `./snakemake` was asked for; a job, or another Snakefile whose module this is, has targets of its own.
asked = json.loads(os.environ.pop("PGRPO_TARGETS", "[]"))
named = json.loads(os.environ.pop("PGRPO_NAMED", "[]"))  # by -R, --until, --omit-from
pages = [*(f"{RESULTS}/{page}.md" for page in PAGES), REPORT]
try:
    check_targets(asked, is_made, pages, ["all", "report"], other_configs)
    check_targets(named, is_made, pages, [rule.name for rule in workflow.rules], other_configs)
except UserError as error:
    raise SystemExit(f"error: {error}") from None
# The files of these, which it names at its end.
files = [{"all": FIRST, "report": REPORT}.get(target, target) for target in asked or ["all"]]
os.environ.update(PGRPO_ASKED=json.dumps(files))
