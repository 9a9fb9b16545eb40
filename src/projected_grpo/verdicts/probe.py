"""The page of the probe's acceptance tests: T1-T4 of every replication; of the first what could fake each, and T4 in
other readings.

A FAIL is a result. What is missing or unreadable is an error and raises before the page is written.
"""

from collections.abc import Mapping, Sequence

import pandas as pd

from projected_grpo.measures.replays import (
    ALIGNMENT,
    BUCKET,
    Replay,
    Sides,
    caliper_of,
    files,
    fixed_by_problem,
    hacked_rows,
    matched,
    n_steps,
    read_replay,
    t4,
    t4_matched,
    t4_problem_means,
    t4_within,
)
from projected_grpo.pages import figures
from projected_grpo.pages.context import Context
from projected_grpo.pages.page import Page, address, render
from projected_grpo.pages.words import NONE, p_value, table
from projected_grpo.verdicts.figures import distributions, trajectory
from projected_grpo.verdicts.marks import PAPER, sides_text, sneaky
from projected_grpo.verdicts.replications import Probed, gaps, gaps_table, replications_table, t4s

STATES = {True: "not so", False: "SUSPICIOUS", None: "cannot be told"}


def readings(vanilla: Replay, others: Mapping[str, Replay]) -> dict[str, Sides]:
    """Return T4 in all its readings: of the probe's own basis, then of other bases on the same pool."""
    samples = vanilla.samples
    found = {
        "every sample (the paper's)": t4(samples),
        "at the untrained student": t4(samples, "cos_S_start"),
        "per-problem means": t4_problem_means(samples),
        "differences within problems": t4_within(samples),
        "samples of matched length": t4_matched(samples),
    }
    for name, replay in others.items():
        found[f"{name}, every sample"] = t4(replay.samples)
        found[f"{name}, at the untrained student"] = t4(replay.samples, "cos_S_start")
        found[f"{name}, per-problem means"] = t4_problem_means(replay.samples)
    return found


def readings_table(found: Mapping[str, Sides]) -> str:
    """Return T4's readings."""

    def row(name: str, sides: Sides) -> list:
        means = (NONE if mean is None else f"{mean:+.4f}" for mean in (sides.mean_wrong, sides.mean_right))
        t = NONE if sides.t is None else f"{sides.t:.2f}"
        passed = "yes" if sides.passed else f"{sides.short} short of {BUCKET}" if sides.short else "no"
        return [name, sides.n_wrong, sides.n_right, *means, t, p_value(sides.p), passed]

    head = [
        "reading",
        "n wrong",
        "n right",
        "alignment, wrong",
        "alignment, right",
        "t",
        "p",
        "t > 2, p < 0.05",
    ]
    return table(head, (row(*item) for item in found.items()))


def controls_of(others: Mapping[str, Replay], controls: Sequence[str]) -> list[tuple[str, str, bool, str]]:
    """Return (basis without content, reading, whether it meets the mark, its test)."""
    asked = (("along the replay", ALIGNMENT), ("at the untrained student", "cos_S_start"))
    found = [(name, reading, t4(others[name].samples, key)) for name in controls for reading, key in asked]
    return [(name, reading, sides.passed, sides_text(sides)) for name, reading, sides in found]


def matching(vanilla: Replay) -> dict[str, float | None]:
    """Return how samples of matched length were paired: caliper, and mean tokens of wrong and right ones."""
    rows = hacked_rows(vanilla.samples)
    pairs = matched(rows, caliper_of(rows))
    means = pairs.groupby("gt_pass")["tokens"].mean() if len(pairs) else {}
    return {"caliper": caliper_of(rows), "wrong": means.get(False), "right": means.get(True)}


def folders(context: Context) -> dict[int, tuple[dict[str, str], dict[str, str]]]:
    """Return by replication the folders of its replays: the probe's own two, then those of other bases."""
    config, found = context.config, {}
    for seed in config.seeds if config.is_replicated else config.seeds[:1]:
        model = config.model_name(seed)
        own = {arm: f"{arm}_seed{seed}" for arm in ("vanilla", "projected")}
        compare = {name: f"{model}/{config.basis_file(name, seed)}/vanilla" for name in config.probe.compare}
        found[seed] = own, compare
    return found


def needs(context: Context) -> list[str]:
    """The replays."""
    found = [folder for own in folders(context).values() for each in own for folder in each.values()]
    return context.below(*(path for folder in found for path in files(folder, context.config)))


def make(context: Context) -> Page:
    """Return the acceptance page."""
    steps, probed = n_steps(context.config), []
    for seed, each in folders(context).items():
        own, others = (
            {name: read_replay(context.results / "probe" / folder, steps) for name, folder in part.items()}
            for part in each
        )
        probed.append(Probed(seed, own["vanilla"], own["projected"], others))
    controls = [name for name in probed[0].others if context.config.knobs(name).control != "none"]
    return page_of(context.name, probed, context.config.probe.basis, controls, context.config.banner)


def page_of(
    name: str, probed: Sequence[Probed], basis: str, controls: Sequence[str], banner: str = ""
) -> Page:
    """Return the page of these replays: every replication, then the first of them in full.

    controls: those of the other bases that have no content.
    """
    first, control = probed[0], next(iter(controls), None)
    vanilla, projected, others = first.vanilla, first.projected, first.others
    pooled, several = gaps(probed, basis, control), len(probed) > 1
    tests = [
        [mark.test, mark.requirement, mark.figure, mark.mark, mark.word, PAPER[mark.test]]
        for mark in first.marks
    ]
    checks = [[c.test, c.failure, c.figure, STATES[c.fine]] for c in sneaky(vanilla, projected)]
    drawn = {
        "trajectory": trajectory(vanilla, projected),
        "distributions": distributions({basis: vanilla, **others}),
    }
    strip = (
        {each: list(t4s(probed, basis, each).values()) for each in first.by_basis(basis)} if several else {}
    )
    if strip := figures.strip(strip, "T4: Welch t of wrong hacks against right ones", mark=2):
        drawn["replications"] = strip
    values = [[one.marks[i].value for one in probed if one.marks[i].value is not None] for i in range(4)]
    text = render(
        "probe.md.j2",
        banner=banner,
        figures=address(name),
        drawn=list(drawn),
        probed=probed,
        first=first,
        basis=basis,
        bound=vanilla.bound,
        met=[sum(one.marks[i].passed for one in probed) for i in range(4)],
        values=values,
        means=[sum(own) / len(own) if own else None for own in values],
        replications=replications_table(probed, basis) if several else "",
        gaps=gaps_table(pooled, control) if several else "",
        tests=table(
            ["test", "requirement", "figure", "passes when", "verdict", "paper (Qwen3-4B)"], tests, 6
        ),
        checks=table(["test", "sneaky failure", "measured", "verdict"], checks, 4),
        readings=readings_table(readings(vanilla, others)),
        fixed=fixed_by_problem(vanilla.samples),
        matching=matching(vanilla),
        controls=controls_of(others, controls),
        untested=int(vanilla.samples["gt_pass"].isna().sum()),
        n=len(probed),
    )
    log = tuple(f"{mark.test} {mark.word}: {mark.figure} ({mark.mark})" for mark in first.marks)
    each = [{"seed": one.seed, **vars(mark)} for one in probed for mark in one.marks]
    frame = pd.DataFrame([*each, *(gap.row() for gap in pooled if several)])
    return Page(name, text, drawn, {".parquet": frame.convert_dtypes()}, log)
