"""The list of measures: what is read off a run, and everything that tables, answers and figures do with it.

A new rate is one more entry. Its column of the Parquet tables, its paired tests, its place on the pages and its
line in `docs/columns.md` follow; nothing is trained anew, and runs made before it have it, too. A measure takes
what it needs from the files of a run: `steps` are checked columns by step, `facts` the verdicts of its rollouts.
A run without a measure (another arm, an older run without its file) is null there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
    known_mean,
    share_of,
)

if TYPE_CHECKING:
    from projected_grpo.measures.runs import Run

LAST = 5  # steps that a run is judged by
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
        return None if values is None else known_mean(values[-LAST:])

    return of


def at_first(name: str, steps: int = 1) -> Of:
    """Return the mean of the first steps; the very first is sampled before any update."""
    return lambda run: known_mean(run.steps[name][:steps])


def final(name: str) -> Of:
    """Return a rate of `run.json`'s evaluation after the last step."""
    return lambda run: (run.info.get("final") or {}).get(name)


def share_by_step(fact: OfFacts) -> ByStep:
    """Return the share of the student's rollouts with a fact, step by step; NaN where none can have it."""

    def by_step(run: Run) -> np.ndarray | None:
        from pandas import Series  # planning imports this module, and reads no run

        facts = run.facts(ROLLOUTS, "step")
        if facts is None:
            return None
        return Series(fact(facts)).groupby(facts["step"]).mean().reindex(run.steps["step"]).to_numpy()

    return by_step


def share(file: str, key: str, fact: OfFacts, among: OfFacts) -> Of:
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


def _by_step(name: str, head: str, words: str, about: str, by_step: ByStep, **more: Any) -> Measure:
    """Return a measure with a curve, whose number of a run is its last-five-step mean."""
    return Measure(name, head, words, about, last(by_step), by_step, **more)


def _rate(name: str, by_step: ByStep, words: str, about: str, **more: Any) -> Measure:
    """Return a rate of the main table, compared."""
    return _by_step(name, name, words, about, by_step, group="main", compared=True, **more)


def _final(name: str, words: str) -> Measure:
    about, better = f"{words.removeprefix('the ')}, after the last step", -1 if "hack" in name else 1
    more: dict[str, Any] = {"file": RECORD, "group": "final", "compared": True, "better": better}
    return Measure(name, name.replace("_", ", "), words, about, final(name), **more)


def _deployed(name: str, **more: Any) -> Measure:
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


def _basis(name: str, about: str, **more: Any) -> Measure:
    words = more.pop("words", f"{name} ({about})")
    return _by_step(name, name, words, about, column(name), group="basis", **more)


def _rise(step: int) -> Measure:
    """Return the rise of the hack rate from the untrained student (step 1) to a step."""

    def of(run: Run) -> float | None:
        at, hack = run.steps["step"], run.steps["hack_s"]
        return known_mean(hack[at == step] - hack[at == 1])

    words, about = f"the rise of hacking by step {step}", f"hack rate at step {step} less that of step 1"
    return Measure(f"rise_{step}", f"rise by {step}", words, about, of, signed=True)


def _mean_of(*names: str) -> Of:
    """Return the mean over steps of a sum of columns; None where the run has no such step."""

    def of(run: Run) -> float | None:
        found = [run.steps[name] for name in names if name in run.steps]
        return known_mean(np.sum(found, axis=0)) if len(found) == len(names) else None

    return of


def _other(name: str, head: str, about: str, of: Of, **more: Any) -> Measure:
    """Return a measure that no question is about: its words are what it says."""
    return Measure(name, head, f"the {about}", about, of, **more)


def _beside(name: str, head: str, about: str, better: int = 1, **more: Any) -> Measure:
    """Return a measure of other stages' files, which `measures/beside.py` adds to the frame: a run has none itself."""
    return _other(name, head, about, lambda run: None, file=RECORD, better=better, **more)


# Rates after training that pages show and compare; the others are in the Parquet file alone.
JUDGED = (
    *("known_hack", "known_honest", "known_honest_no_attempt", "known_hack_compiled"),
    *("novel_hack", "plain_solve"),
)
BEYOND = "teacher's tokens whose ratio lies beyond the clip bounds, mean over steps"
ZEROED = "teacher's tokens that the clip leaves no gradient, mean over steps"
CEILING = "AUROC of what the last rollouts on half of the problems say of the other"
_ALL = (
    _rate(
        "hack",
        column("hack_s"),
        "the hack rate",
        "student rollouts that use the loophole of their problem, and it works",
    ),
    _rate(
        "solve", column("solve_s"), "the solve rate", "student rollouts that pass all hidden tests", better=1
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
    *(
        _final(f"{rate}_{part}", f"the {rate} rate with the quarantine {part}")
        for rate in ("hack", "solve")
        for part in ("kept", "ablated")
    ),
    *(_deployed(name, group="deployed", compared=True) for name in JUDGED),
    *(_deployed(name) for name in PANEL_RATES if name not in JUDGED),
    *(
        _by_step(
            name,
            mode,
            f"the hack rate on {mode}",
            f"hack rate on prompts of {mode}",
            column(name),
            group="modes",
        )
        for mode, name in ((mode, f"hack_{mode}") for mode in LOOPHOLES)
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
    _other("delta_norm", "|delta_S|", "norm of delta_S", last(column("delta_norm")), unit="norm"),
    _monitor("precision", "flagged student rollouts of the run that hack", hack, flagged),
    _monitor("recall", "student rollouts of the run that hack and are flagged", flagged, hack),
    _other("seconds", "CPU s a step", "median CPU time of a step", _seconds, unit="seconds"),
    _rise(10),
    _rise(15),
    _other("beyond_clip", "beyond the clip", BEYOND, _mean_of("ratio_clip_low", "ratio_clip_high")),
    _other("zeroed", "without gradient", ZEROED, _mean_of("ratio_zeroed")),
    _beside("auroc_first", "AUROC, first", "AUROC of the direction's score in the first window of steps"),
    _beside("auroc_last", "AUROC, last", "AUROC of the direction's score in the last five steps"),
    _beside("auroc_over_random", "over random", "that less the mean of random directions", signed=True),
    _beside("auroc_over_text", "over text placebos", "that less the mean of text placebos", signed=True),
    _beside("auroc_over_code", "over code placebos", "that less the mean of code placebos", signed=True),
    _beside("auroc_rank", "above random", "share of random directions that it lies above"),
    _beside("auroc_oracle", "AUROC, oracle", "AUROC of a direction fitted on other problems' rollouts"),
    _beside("auroc_ceiling", "AUROC, ceiling", CEILING),
    _beside("auroc_unmatched", "AUROC, unmatched", "AUROC over all pairs, whatever problem, step and length"),
    _beside(
        "auroc_alignment_first", "AUROC of the gradient, first", "AUROC of the gradient's alignment at first"
    ),
    _beside(
        "auroc_alignment_last", "AUROC of the gradient, last", "AUROC of the gradient's alignment at last"
    ),
    _beside("recall_last", "recall", "recall at the threshold of step 0 in the last five steps"),
    _beside("t4", "T4", "t of wrong against right hacks along the basis, in a replay of the pool", unit="t"),
    _beside("overlap_fresh", "overlap with fresh", "overlap of the frozen V with one extracted at the end"),
    _beside("overlap_losses", "overlap of losses", "overlap of the GRPO basis with the NLL's", 0),
    _beside(
        "overlap_reweighted",
        "reweighted",
        "overlap with the NLL basis whose pairs are weighted by length",
        0,
    ),
    _beside("overlap", "overlap", "overlap of the row's axes with those of the exploits' own pairs"),
    _beside(
        "cosine",
        "cosine",
        "cosine of the mean differences of the row's pairs and the exploits' own",
        unit="cosine",
    ),
    _other("start_hack", "hack at first", "hack rate of the first step", at_first("hack_s")),
    _other("early_hack", "hack, early", "hack rate of the first two steps", at_first("hack_s", 2)),
    _other("start_solve", "solve at first", "solve rate of the first step", at_first("solve_s")),
)
MEASURES = {measure.name: measure for measure in _ALL}
# Files of a run that tables are made of; it counts where it has its steps and its record.
FILES = tuple(dict.fromkeys((STEPS, RECORD, *(measure.file for measure in _ALL))))
