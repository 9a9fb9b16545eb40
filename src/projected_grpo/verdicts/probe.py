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
from projected_grpo.pages.blocks import Cell, Figure, Grid, Heading, Listing, Page, Paragraph, Source, grid
from projected_grpo.pages.context import Context
from projected_grpo.pages.standing import of_seeds
from projected_grpo.pages.text import NONE, p_value
from projected_grpo.verdicts.figures import distributions, t4_strip, trajectory
from projected_grpo.verdicts.marks import PAPER, sides_text, sneaky
from projected_grpo.verdicts.replications import (
    READ,
    Probed,
    gaps,
    gaps_grid,
    replications_grid,
    sentences,
    t4s,
)
from projected_grpo.verdicts.verdict import Verdict


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


def readings_grid(found: Mapping[str, Sides]) -> Grid:
    """Return T4's readings as a grid."""

    def alignment(mean: float | None) -> str:
        return NONE if mean is None else f"{mean:+.4f}"

    def passed(sides: Sides) -> str:
        return "yes" if sides.passed else f"{sides.short} short of {BUCKET}" if sides.short else "no"

    columns = {
        "reading": lambda item: item[0],
        "n wrong": lambda item: item[1].n_wrong,
        "n right": lambda item: item[1].n_right,
        "alignment, wrong": lambda item: alignment(item[1].mean_wrong),
        "alignment, right": lambda item: alignment(item[1].mean_right),
        "t": lambda item: NONE if item[1].t is None else f"{item[1].t:.2f}",
        "p": lambda item: p_value(item[1].p),
        "t > 2, p < 0.05": lambda item: passed(item[1]),
    }
    return grid(found.items(), columns, title="T4 in other readings")


def fixed_sentence(vanilla: Replay) -> str:
    """Say how far gt_pass is a property of the problem, in which case T4 compares kinds of problem."""
    fixed = fixed_by_problem(vanilla.samples)
    if not fixed.total:
        return "No problem has hacks with a known gt_pass."
    so = "So gt_pass varies within most problems."
    if fixed.both == 0:
        so = "So gt_pass is fixed by the problem, and T4 compares kinds of problem, not kinds of answer."
    elif fixed.both < fixed.total / 2:
        so = "So gt_pass is mostly fixed by the problem: T4 compares kinds of problem as much as of answer."
    return (
        f"Of {fixed.total} problems with hacks, {fixed.only_wrong} have wrong ones only, {fixed.only_right} "
        f"right ones only, {fixed.both} both. {so}"
    )


def control_sentence(others: Mapping[str, Replay], controls: list[str]) -> str:
    """Say what T4 proves beside bases without content."""
    parts = []
    for name in controls:
        for reading, alignment in (
            ("along the replay", ALIGNMENT),
            ("at the untrained student", "cos_S_start"),
        ):
            sides = t4(others[name].samples, alignment)
            meets = "meets" if sides.passed else "does not meet"
            parts.append(f"`{name}` {reading} {meets} the mark ({sides_text(sides)})")
    proves = "A basis without content that meets it shows that T4 alone proves little."
    return f"Without content: {'; '.join(parts)}. {proves}" if parts else ""


def matching(vanilla: Replay) -> str:
    """Say how samples of matched length were paired."""
    rows = hacked_rows(vanilla.samples)
    pairs = matched(rows, caliper_of(rows))
    text = f"Matched length: pairs that differ by at most {caliper_of(rows):.1f} tokens"
    if not len(pairs):
        return f"{text}: none."
    means = pairs.groupby("gt_pass")["tokens"].mean()
    return f"{text} (means {means[False]:.1f} wrong, {means[True]:.1f} right)."


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


def make(context: Context) -> Verdict:
    """Return the acceptance page."""
    steps, probed = n_steps(context.config), []
    for seed, each in folders(context).items():
        own, others = (
            {name: read_replay(context.results / "probe" / folder, steps) for name, folder in part.items()}
            for part in each
        )
        probed.append(Probed(seed, own["vanilla"], own["projected"], others))
    controls = [name for name in probed[0].others if context.config.knobs(name).control != "none"]
    return verdict(context.name, probed, context.config.probe.basis, controls)


def verdict(name: str, probed: Sequence[Probed], basis: str, controls: Sequence[str]) -> Verdict:
    """Return the page of these replays: every replication, then the first of them in full.

    controls: those of the other bases that have no content.
    """
    first, control = probed[0], next(iter(controls), None)
    vanilla, projected, others = first.vanilla, first.projected, first.others
    pooled = gaps(probed, basis, control)
    lines = first.marks
    tests = {
        "test": lambda mark: mark.test,
        "requirement": lambda mark: mark.requirement,
        "figure": lambda mark: mark.figure,
        "passes when": lambda mark: mark.mark,
        "verdict": lambda mark: Cell(mark.word, strong=True),
        "paper (Qwen3-4B)": lambda mark: PAPER[mark.test],
    }
    state = {True: "not so", False: "SUSPICIOUS", None: "cannot be told"}
    checks = {
        "test": lambda check: check.test,
        "sneaky failure": lambda check: check.failure,
        "measured": lambda check: check.figure,
        "verdict": lambda check: state[check.fine],
    }
    modules = int(vanilla.steps["modules"].iloc[0])
    untested = vanilla.samples["gt_pass"].isna().sum()
    drawn = {
        "trajectory": (
            trajectory(vanilla, projected),
            "Left: alignment of each sample with the basis along the replay, vanilla and projected; lines: means. "
            "Right: the hack-ward share of each step.",
        ),
        "distributions": (
            distributions({basis: vanilla, **others}),
            "Alignment per sample by verdict: whether the rollout hacks and whether it is right.",
        ),
    }
    notes = (
        matching(vanilla),
        fixed_sentence(vanilla),
        control_sentence(others, controls),
        f"{untested} samples have no gt_pass (no hidden tests) and are left out of T4." if untested else "",
    )
    said, every = (), ()
    if len(probed) > 1:
        strip = t4_strip({each: t4s(probed, basis, each) for each in first.by_basis(basis)})
        drawn |= {"replications": (strip, "T4 on every replication; the bar is the mean.")} if strip else {}
        said = (Listing(sentences(probed, pooled, control)), Paragraph("", f"In full, {first.name}:"))
        every = (
            *(Paragraph(text, kind="legend") for text in READ),
            replications_grid(probed, basis),
            gaps_grid(pooled, control),
        )
    page = Page(
        name=name,
        title="Distillation probe: acceptance tests",
        menu="Probe",
        asks="Does the basis see hacking at all, and does projection take it out?",
        blocks=(
            Paragraph(
                "The teacher's rollouts are replayed as NLL training of the student, one problem a step, in each "
                f"replication by itself. Basis `{basis}`, {len(vanilla.steps)} problems, {len(vanilla.samples)} "
                f"samples, {modules} modules with axes (the alignment, cos_S_contrib, is at most {vanilla.bound:.2f})."
            ),
            *(Figure(figure, caption) for figure, (_, caption) in drawn.items()),
            *every,
            Heading(f"In full: {first.name}"),
            grid(lines, tests, texts=6),
            grid(sneaky(vanilla, projected), checks, texts=4, title="What could fake it"),
            Paragraph(
                "Samples of one problem are not independent, so T4 is asked again per problem, within problems and at "
                "matched length; then with other bases on the same rollouts.",
                kind="note",
            ),
            readings_grid(readings(vanilla, others)),
            *(Paragraph(text) for text in notes if text),
        ),
        answer=(
            *map(Paragraph, of_seeds([one.seed for one in probed])),
            *said,
            Listing(tuple(f"{mark.test} {mark.word}: {mark.requirement}; {mark.figure}" for mark in lines)),
            Paragraph("A FAIL is a result: it says what the GRPO tables can be expected to show."),
        ),
        sources=(
            Source("Files behind this page", files=("logs/probe",)),
            *(Source(one.name, files=tuple(map(_below, one.replays))) for one in probed),
        ),
        default=True,
    )
    log = tuple(f"{mark.test} {mark.word}: {mark.figure} ({mark.mark})" for mark in lines)
    each = [{"seed": one.seed, **vars(mark)} for one in probed for mark in one.marks]
    frame = pd.DataFrame([*each, *(gap.row() for gap in pooled if len(probed) > 1)])
    return Verdict(page, frame.convert_dtypes(), drawn, log)


def _below(replay: Replay) -> str:
    """Return a replay's folder as seen from the results folder."""
    parts = replay.folder.parts
    return "/".join(parts[len(parts) - parts[::-1].index("probe") - 1 :] if "probe" in parts else parts)
