"""Replays in, `uat.md` and its figures out."""

from pathlib import Path

from projected_grpo.files import write_text
from projected_grpo.job import job
from projected_grpo.pages import style
from projected_grpo.verdicts.probe import read_replay
from projected_grpo.verdicts.probe_figures import distributions, trajectory
from projected_grpo.verdicts.probe_uat import to_markdown, verdicts

with job(snakemake) as log:
    params, output = snakemake.params, snakemake.output
    root = Path(output.md).parent
    own, others = (
        {name: read_replay(root / folder, params.steps) for name, folder in each.items()}
        for each in params.folders
    )
    vanilla, projected = own["vanilla"], own["projected"]
    write_text(output.trajectory, style.to_svg(trajectory(vanilla, projected)))
    write_text(output.distributions, style.to_svg(distributions({params.basis: vanilla, **others})))
    names = [Path(path).name for path in (output.trajectory, output.distributions)]
    figures = [f"![{Path(name).stem}]({name})" for name in names]
    write_text(output.md, to_markdown(vanilla, projected, others, params.basis, params.controls, figures))
    for verdict in verdicts(vanilla, projected):
        log.info("%s %s: %s (%s)", verdict.test, verdict.word, verdict.figure, verdict.mark)
