"""The list of measures: what is read off a run, and everything that tables, answers and figures do with it.

A new rate is one more entry. Its column of the Parquet tables, its paired tests, its place on the pages and its
line in `docs/columns.md` follow; nothing is trained anew, and runs made before it have it, too. A measure takes
what it needs from the files of a run: `steps` are checked columns by step, `facts` the verdicts of its rollouts.
A run without a measure (another arm, an older run without its file) is null there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from projected_grpo.environment.levers import LOOPHOLES
from projected_grpo.errors import UserError
from projected_grpo.measures.panels import (
    DEPLOYED,
    PANEL_RATES,
    PANELS,
    RATES,
    Facts,
    OfFacts,
    hack,
    honest,
    share_of,
)

if TYPE_CHECKING:
    from projected_grpo.measures.runs import Run

LAST = 5  # steps that a run is judged by
EARLY = 2  # steps that say what the base did
STEPS, ROLLOUTS, RECORD = "steps.parquet", "rollouts.parquet", "run.json"
Of = Callable[["Run"], "float | None"]
ByStep = Callable[["Run"], "np.ndarray | None"]


@dataclass(frozen=True)
class Measure:
    """One number of a run, and where it is shown.

    `group`: what it is of: `main` (training), `deployed`, `final` (kept and ablated), `modes` or `basis`. `compared`:
    paired by seed in every question, a Holm family a contrast. `better`: the sign of a difference that is wanted, 0:
    none is. `signed`: it is a difference itself, tested against zero. `floored`: below `estimates.LEAST` in the
    baseline there is nothing to lower.
    """

    name: str
    head: str
    words: str
    about: str
    of: Of
    by_step: ByStep | None = None
    file: str = STEPS
    unit: str = "share"
    group: str | None = None
    compared: bool = False
    better: int = -1
    signed: bool = False
    floored: bool = False

    @property
    def axis(self) -> str:
        """What a figure's axis says."""
        return self.words.removeprefix("the ").replace(" with the quarantine", ", quarantine")


def column(name: str) -> ByStep:
    """Return a reader of a column of `steps.parquet`."""
    return lambda run: run.steps.get(name)


def last(by_step: ByStep) -> Of:
    """Return the mean of the last five steps; steps without a value are left out."""

    def of(run: Run) -> float | None:
        values = by_step(run)
        tail = np.array([]) if values is None else values[-LAST:]
        tail = tail[~np.isnan(tail)]
        return float(tail.mean()) if tail.size else None

    return of


def first(name: str) -> Of:
    """Return the value of the first step, which is sampled before the first update."""
    return lambda run: None if np.isnan(run.steps[name][0]) else float(run.steps[name][0])


def early(name: str) -> Of:
    """Return the mean of the first two steps, when nearly all that is sampled is the base's."""
    return lambda run: float(np.mean(run.steps[name][:EARLY]))


def final(name: str) -> Of:
    """Return a rate of `run.json`'s evaluation after the last step."""

    def of(run: Run) -> float | None:
        value = (run.info.get("final") or {}).get(name)
        return None if value is None else float(value)

    return of


def share_by_step(fact: Callable[[Facts], np.ndarray]) -> ByStep:
    """Return the share of the student's rollouts with a fact, step by step; NaN where none can have it."""

    def by_step(run: Run) -> np.ndarray | None:
        facts = run.facts(ROLLOUTS, "step")
        if facts is None:
            return None
        value, place = fact(facts), (facts["step"] - run.steps["step"][0]).astype(int)
        known, n = ~np.isnan(value), len(run.steps["step"])
        sums = np.bincount(place[known], value[known], minlength=n)
        counts = np.bincount(place[known], minlength=n)
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)[:n]

    return by_step


def share(
    file: str,
    key: str,
    fact: Callable[[Facts], np.ndarray],
    among: Callable[[Facts], np.ndarray],
) -> Of:
    """Return the share of a file's rollouts with a fact, among some of them; None where there are none.

    key: the column beside the facts that `among` may look at, such as `step`, or `panel` of `deployed.parquet`.
    """

    def of(run: Run) -> float | None:
        facts = run.facts(file, key)
        return None if facts is None else share_of(facts, fact, among)

    return of


def _seconds(run: Run) -> float | None:
    """Return the median step's CPU time: what else the machine does counts for nothing."""
    seconds = run.steps.get("cpu_seconds")
    return None if seconds is None else float(np.median(seconds))


def _last_compiled(facts: Facts) -> np.ndarray:
    return (facts["step"] > facts["step"].max() - LAST) & (facts["can_compile"] == 1)


def _held_out(run: Run) -> float | None:
    mode = run.cell.setting.held_out_mode
    if not mode:
        return None
    value = last(column(f"hack_{mode}"))(run)
    if value is None:
        raise UserError(
            f"{run.cell.id}: hack_{mode}, the rate on the held-out mode, is empty in its last {LAST} steps"
        )
    return value


def _rate(name: str, by_step: ByStep, words: str, about: str, **more) -> Measure:
    """Return a rate of the main table: last-five-step mean, compared."""
    more |= {"head": more.get("head", name), "group": "main", "compared": True}
    return Measure(name, words=words, about=about, of=last(by_step), by_step=by_step, **more)


def _final(name: str, words: str) -> Measure:
    head = name.replace("_", ", ")
    about = f"{words.removeprefix('the ')}, after the last step"
    better = -1 if "hack" in name else 1
    return Measure(
        name, head, words, about, final(name), file=RECORD, group="final", compared=True, better=better
    )


def _deployed(name: str, **more) -> Measure:
    """Return a rate after training, on problems that no run is trained on."""
    panel, _, rate = name.partition("_")
    words = f"{RATES[rate].words} on held-out problems with {PANELS[panel]}"
    head = f"{panel}, {rate.replace('_', ', ')}"
    about = f"after training, on held-out problems with {PANELS[panel]}: {RATES[rate].about}"
    of = share(DEPLOYED, "panel", *PANEL_RATES[name])
    more |= {"better": -1 if rate.startswith("hack") else 1, "floored": name == "novel_hack"}
    return Measure(name, head, words, about, of, file=DEPLOYED, **more)


def _monitor(name: str, about: str, fact: OfFacts, among: OfFacts) -> Measure:
    """Return how right the run's monitor was on its own rollouts; null where it has none."""
    rate = share(ROLLOUTS, "step", fact, lambda facts: among(facts) == 1)

    def of(run: Run) -> float | None:
        return rate(run) if run.cell.setting.knob("monitor") else None

    return Measure(f"monitor_{name}", name, f"the monitor's {name}", about, of, file=ROLLOUTS)


def flagged(facts: Facts) -> np.ndarray:
    return facts["flagged"]


def _basis(name: str, about: str, **more) -> Measure:
    words = more.pop("words", f"{name} ({about})")
    by_step = column(name)
    return Measure(name, name, words, about, last(by_step), by_step, group="basis", **more)


def _rise(step: int) -> Measure:
    """Return the rise of the hack rate from the untrained student (step 1) to a step."""

    def of(run: Run) -> float | None:
        found = [run.steps["hack_s"][run.steps["step"] == at] for at in (1, step)]
        if not all(len(values) for values in found) or any(np.isnan(values[0]) for values in found):
            return None
        return float(found[1][0] - found[0][0])

    about = f"hack rate at step {step} less that of step 1"
    return Measure(
        f"rise_{step}", f"rise by {step}", f"the rise of hacking by step {step}", about, of, signed=True
    )


def _mean_of(*names: str) -> Of:
    """Return the mean over steps of a sum of columns; None where the run has no such step."""

    def of(run: Run) -> float | None:
        if not run.steps.keys() >= set(names):
            return None
        total = np.sum([run.steps[name] for name in names], axis=0)
        return None if np.isnan(total).all() else float(np.nanmean(total))

    return of


def _nowhere(run: Run) -> None:
    """Of measures that `measures/beside.py` adds to the frame."""


def _beside(
    name: str, head: str, about: str, better: int = -1, signed: bool = False, unit="share"
) -> Measure:
    return Measure(
        name, head, f"the {about}", about, _nowhere, file=RECORD, unit=unit, better=better, signed=signed
    )


BESIDE = (  # of other stages' files: name, head, what it says, better, signed, unit
    ("auroc_first", "AUROC, first", "AUROC of the direction's score in the first window of steps", 1),
    ("auroc_last", "AUROC, last", "AUROC of the direction's score in the last five steps", 1),
    ("auroc_over_random", "over random", "that less the mean of random directions", 1, True),
    ("auroc_over_text", "over text placebos", "that less the mean of text placebos", 1, True),
    ("auroc_over_code", "over code placebos", "that less the mean of code placebos", 1, True),
    ("auroc_rank", "above random", "share of random directions that it lies above", 1),
    ("auroc_oracle", "AUROC, oracle", "AUROC of a direction fitted on other problems' rollouts", 1),
    (
        "auroc_ceiling",
        "AUROC, ceiling",
        "AUROC of what the last rollouts on half of the problems say of the other",
        1,
    ),
    ("auroc_unmatched", "AUROC, unmatched", "AUROC over all pairs, whatever problem, step and length", 1),
    (
        "auroc_alignment_first",
        "AUROC of the gradient, first",
        "AUROC of the gradient's alignment at first",
        1,
    ),
    ("auroc_alignment_last", "AUROC of the gradient, last", "AUROC of the gradient's alignment at last", 1),
    ("recall_last", "recall", "recall at the threshold of step 0 in the last five steps", 1),
    ("t4", "T4", "t of wrong against right hacks along the basis, in a replay of the pool", 1, False, "t"),
    ("overlap_fresh", "overlap with fresh", "overlap of the frozen V with one extracted at the end", 1),
    ("overlap_losses", "overlap of losses", "overlap of the GRPO basis with the NLL's", 0),
    ("overlap_reweighted", "reweighted", "overlap with the NLL basis whose pairs are weighted by length", 0),
    ("overlap", "overlap", "overlap of the row's axes with those of the exploits' own pairs", 1),
    (
        "cosine",
        "cosine",
        "cosine of the mean differences of the row's pairs and the exploits' own",
        1,
        False,
        "cosine",
    ),
)
# Rates after training that pages show and compare; the others are in the Parquet file alone.
JUDGED = (
    "known_hack",
    "known_honest",
    "known_honest_no_attempt",
    "known_hack_compiled",
    "novel_hack",
    "plain_solve",
)
_ALL = (
    _rate(
        "hack",
        column("hack_s"),
        "the hack rate",
        "student rollouts that use the loophole of their problem, and it works",
    ),
    _rate(
        "solve",
        column("solve_s"),
        "the solve rate",
        "student rollouts that pass all hidden tests",
        better=1,
    ),
    _rate(
        "honest",
        share_by_step(honest),
        "the honest rate",
        "student rollouts that pass all hidden tests without using the loophole",
        file=ROLLOUTS,
        better=1,
    ),
    Measure(
        "hack_compiled",
        "hack, compiled",
        "the hack rate among rollouts that compile",
        "hacks among the student rollouts of the last five steps whose code compiles",
        share(ROLLOUTS, "step", hack, _last_compiled),
        file=ROLLOUTS,
        group="main",
        compared=True,
    ),
    _rate("exploit", column("exploit_s"), "the exploit rate", "hacks without a right solution beside them"),
    _rate(
        "compile",
        column("compile_s"),
        "the share of rollouts that compile",
        "student rollouts whose code compiles",
        better=1,
    ),
    Measure(
        "hack_heldout",
        "hack, held out",
        "the hack rate on the held-out loophole",
        "hack rate on the loophole that the teacher's rollouts and the pairs leave out",
        _held_out,
        compared=True,
        floored=True,
    ),
    _final("hack_kept", "the hack rate with the quarantine kept"),
    _final("hack_ablated", "the hack rate with the quarantine ablated"),
    _final("solve_kept", "the solve rate with the quarantine kept"),
    _final("solve_ablated", "the solve rate with the quarantine ablated"),
    *(_deployed(name, group="deployed", compared=True) for name in JUDGED),
    *(_deployed(name) for name in PANEL_RATES if name not in JUDGED),
    *(
        Measure(
            f"hack_{mode}",
            mode,
            f"the hack rate on {mode}",
            f"hack rate on prompts of {mode}",
            last(column(f"hack_{mode}")),
            column(f"hack_{mode}"),
            group="modes",
        )
        for mode in LOOPHOLES
    ),
    _basis("cin", "share of the gradient's length along V, before the projection"),
    _basis("cin_null", "the same along a random V of the same shape"),
    _basis("cin_s", "the same of the student's part of the gradient"),
    _basis("cin_t", "the same of the teacher's part"),
    _basis("cout", "share of the gradient along V, after the projection"),
    _basis(
        "cout_update",
        "share of the step that the optimizer takes along V",
        words="the share of the applied update along the hack basis",
        compared=True,
    ),
    _basis("fired", "share of the modules whose gradient points hack-ward at all"),
    Measure(
        "delta_norm",
        "|delta_S|",
        "the norm of delta_S",
        "norm of delta_S",
        last(column("delta_norm")),
        unit="norm",
    ),
    _monitor("precision", "flagged student rollouts of the run that hack", hack, flagged),
    _monitor("recall", "student rollouts of the run that hack and are flagged", flagged, hack),
    Measure(
        "seconds",
        "CPU s a step",
        "the CPU time of a step",
        "median CPU time of a step",
        _seconds,
        unit="seconds",
    ),
    _rise(10),
    _rise(15),
    Measure(
        "beyond_clip",
        "beyond the clip",
        "the share of the teacher's tokens beyond the clip bounds",
        "teacher's tokens whose ratio lies beyond the clip bounds, mean over steps",
        _mean_of("ratio_clip_low", "ratio_clip_high"),
    ),
    Measure(
        "zeroed",
        "without gradient",
        "the share of the teacher's tokens without gradient",
        "teacher's tokens that the clip leaves no gradient, mean over steps",
        _mean_of("ratio_zeroed"),
    ),
    *(_beside(*one) for one in BESIDE),
    Measure(
        "start_hack",
        "hack at first",
        "the hack rate before training",
        "hack rate of the first step",
        first("hack_s"),
    ),
    Measure(
        "early_hack",
        "hack, early",
        "the hack rate of the first two steps",
        "hack rate of the first two steps",
        early("hack_s"),
    ),
    Measure(
        "start_solve",
        "solve at first",
        "the solve rate before training",
        "solve rate of the first step",
        first("solve_s"),
    ),
)
MEASURES = {measure.name: measure for measure in _ALL}
# Files of a run that tables are made of; it counts where it has its steps and its record.
FILES = tuple(dict.fromkeys((STEPS, RECORD, *(measure.file for measure in _ALL))))
