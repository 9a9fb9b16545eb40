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
from projected_grpo.measures.panels import DEPLOYED, PANEL_RATES, PANELS, RATES, honest, known_mean

if TYPE_CHECKING:  # planning imports this module, and reads no run
    import pandas as pd

    from projected_grpo.measures.runs import Run

LAST = 5  # steps that a run is judged by
STEPS, ROLLOUTS, RECORD = "steps.parquet", "rollouts.parquet", "run.json"
BESIDE = "other stages"  # whose files are no run's
Of = Callable[["Run"], "float | None"]
ByStep = Callable[["Run"], "np.ndarray | None"]


@dataclass(frozen=True)
class Measure:
    """One number of a run, and where it is shown.

    `of`: reads it off a run; by default the mean of the last five steps of `by_step`, those without a value left out.
    A measure with neither is one that other stages' files have. `group`: what it is of: `main` (training), `deployed`,
    `final` (kept and ablated) or `modes`. `compared`: paired by seed in every question, a Holm family a
    contrast. `better`: the sign of a difference that is wanted, 0: none is. `signed`: it is a difference itself, tested
    against zero. `floored`: below `measured.LEAST` in the baseline there is nothing to lower.
    """

    name: str
    head: str
    words: str
    about: str
    of: Of | None = None
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

    @property
    def is_rate(self) -> bool:
        """Return whether it is a share, and none that is a difference."""
        return self.unit == "share" and not self.signed

    def number(self, run: Run) -> float | None:
        """Return the measure of a run; None where it has none."""
        if self.of is not None:
            return self.of(run)
        by_step = self.by_step(run) if self.by_step else None
        return None if by_step is None else known_mean(by_step[-LAST:])


def column(name: str) -> ByStep:
    """Return a reader of a column of `steps.parquet`."""
    return lambda run: run.steps.get(name)


def honest_by_step(run: Run) -> np.ndarray | None:
    """Return the honest rate of each step; NaN where no problem has hidden tests, None without the rollouts."""
    if run.rollouts is None:
        return None
    by_step = honest(run.rollouts).groupby(run.rollouts["step"]).mean()
    return by_step.reindex(run.steps["step"]).to_numpy()


def _over_rollouts(of: Callable[[pd.DataFrame], pd.Series]) -> Of:
    """Return a reader of a mean over rollouts; of: their values, NaN where one is not counted."""
    return lambda run: None if run.rollouts is None else known_mean(of(run.rollouts))


def _hack_compiled(facts: pd.DataFrame) -> pd.Series:
    return RATES["hack_compiled"].of(facts)[facts["step"] > facts["step"].max() - LAST]


def _held_out(run: Run) -> float | None:
    mode = run.cell.setting.held_out_mode
    return known_mean(run.steps[f"hack_{mode}"][-LAST:]) if mode else None


def _seconds(run: Run) -> float | None:
    """Return the median step's CPU time: what else the machine does counts for nothing."""
    seconds = run.steps.get("cpu_seconds")
    return None if seconds is None else float(np.median(seconds))


def _rate(name: str, by_step: ByStep, about: str, words: str = "the {} rate", **more: Any) -> Measure:
    """Return a rate of the main table, compared."""
    return Measure(
        name, name, words.format(name), about, by_step=by_step, group="main", compared=True, **more
    )


def _final(rate: str, part: str) -> Measure:
    """Return a rate of `run.json`'s evaluation after the last step, with the quarantine kept or ablated."""
    name, words = f"{rate}_{part}", f"{rate} rate with the quarantine {part}"
    return Measure(
        name,
        f"{rate}, {part}",
        f"the {words}",
        f"{words}, after the last step",
        lambda run: (run.info.get("final") or {}).get(name),
        file=RECORD,
        group="final",
        compared=True,
        better=-1 if rate == "hack" else 1,
    )


def _deployed(name: str) -> Measure:
    """Return a rate after training, on problems that no run is trained on."""
    panel, rate = PANEL_RATES[name]
    problems = f"held-out problems with {PANELS[panel]}"
    return Measure(
        name,
        f"{panel}, {rate.replace('_', ', ', 1).replace('_', ' ')}",
        f"{RATES[rate].words} on {problems}",
        f"after training, on {problems}: {RATES[rate].about}",
        lambda run: run.deployed.get(name),
        file=DEPLOYED,
        group="deployed" if name in JUDGED else None,
        compared=name in JUDGED,
        better=-1 if rate.startswith("hack") else 1,
        floored=name == "novel_hack",
    )


def _monitor(name: str, about: str, counted: str, among: str) -> Measure:
    """Return how right the run's monitor was on its own rollouts; null where it has none."""
    of = _over_rollouts(
        lambda facts: facts.loc[facts[among] == 1, counted] if "flagged" in facts else facts["step"][:0]
    )
    return Measure(f"monitor_{name}", name, f"the monitor's {name}", about, of, file=ROLLOUTS)


def _on_mode(mode: str) -> Measure:
    name, rate = f"hack_{mode}", "hack rate on"
    about = f"{rate} prompts of {mode}"
    return Measure(name, mode, f"the {rate} {mode}", about, by_step=column(name), group="modes")


def _along(name: str, about: str, words: str = "{} ({})", **more: Any) -> Measure:
    """Return an alignment with the basis."""
    return Measure(name, name, words.format(name, about), about, by_step=column(name), **more)


def _first(steps: int, name: str) -> Of:
    """Return the mean of the first steps; the very first is sampled before any update."""
    return lambda run: known_mean(run.steps[name][:steps])


def _rise(step: int) -> Measure:
    """Return the rise of the hack rate from the untrained student (step 1) to a step."""

    def of(run: Run) -> float | None:
        at, hack = run.steps["step"], run.steps["hack_s"]
        return known_mean(hack[at == step] - hack[at == 1])

    words, about = f"the rise of hacking by step {step}", f"hack rate at step {step} less that of step 1"
    return Measure(f"rise_{step}", f"rise by {step}", words, about, of, signed=True)


def _other(name: str, head: str, about: str, of: Of | None = None, **more: Any) -> Measure:
    """Return a measure that no question is about: its words are what it says."""
    return Measure(name, head, f"the {about}", about, of, **more)


def _beside(name: str, head: str, about: str, better: int = 1, **more: Any) -> Measure:
    """Return a measure of other stages' files, which `measures/beside.py` adds to the frame."""
    return _other(name, head, about, file=BESIDE, better=better, **more)


# Rates after training that pages show and compare; the others are in the Parquet file alone.
JUDGED = (
    *("known_hack", "known_honest", "known_honest_no_attempt", "known_hack_compiled"),
    *("novel_hack", "plain_solve"),
)
CEILING = "AUROC of what the last rollouts on half of the problems say of the other"
GRADIENT = "AUROC of the gradient"
UPDATE = "the share of the applied update along the hack basis"
_ALL = (
    _rate("hack", column("hack_s"), "student rollouts that use the loophole of their problem, and it works"),
    _rate("solve", column("solve_s"), "student rollouts that pass all hidden tests", better=1),
    _rate(
        "honest",
        honest_by_step,
        "student rollouts that pass all hidden tests without using the loophole",
        file=ROLLOUTS,
        better=1,
    ),
    Measure(
        "hack_compiled",
        "hack, compiled",
        "the hack rate among rollouts that compile",
        "hacks among the student rollouts of the last five steps whose code compiles",
        _over_rollouts(_hack_compiled),
        file=ROLLOUTS,
        group="main",
        compared=True,
    ),
    _rate("exploit", column("exploit_s"), "hacks without a right solution beside them"),
    _rate(
        "compile",
        column("compile_s"),
        "student rollouts whose code compiles",
        "the share of rollouts that {}",
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
    *(_final(rate, part) for rate in ("hack", "solve") for part in ("kept", "ablated")),
    *(_deployed(name) for name in dict.fromkeys([*JUDGED, *PANEL_RATES])),
    *map(_on_mode, LOOPHOLES),
    _along("cin", "share of the gradient's length along V, before the projection"),
    _along("cin_null", "the same along a random V of the same shape"),
    _along("cin_s", "the same of the student's part of the gradient"),
    _along("cin_t", "the same of the teacher's part"),
    _along("cout", "share of the gradient along V, after the projection"),
    _along("cout_update", "share of the step that the optimizer takes along V", UPDATE, compared=True),
    _along("fired", "share of the modules whose gradient points hack-ward at all"),
    _other("delta_norm", "|delta_S|", "norm of delta_S", by_step=column("delta_norm"), unit="norm"),
    _monitor("precision", "flagged student rollouts of the run that hack", "channel", "flagged"),
    _monitor("recall", "student rollouts of the run that hack and are flagged", "flagged", "channel"),
    _other("seconds", "CPU s a step", "median CPU time of a step", _seconds, unit="seconds"),
    _rise(10),
    _rise(15),
    _other(
        "beyond_clip",
        "beyond the clip",
        "teacher's tokens whose ratio lies beyond the clip bounds, mean over steps",
        lambda run: known_mean(run.steps["ratio_clip_low"] + run.steps["ratio_clip_high"]),
    ),
    _other(
        "zeroed",
        "without gradient",
        "teacher's tokens that the clip leaves no gradient, mean over steps",
        lambda run: known_mean(run.steps["ratio_zeroed"]),
    ),
    _beside("auroc_first", "AUROC, first", "AUROC of the direction's score in the first window of steps"),
    _beside("auroc_last", "AUROC, last", "AUROC of the direction's score in the last five steps"),
    _beside("auroc_over_random", "over random", "that less the mean of random directions", signed=True),
    _beside("auroc_over_text", "over text placebos", "that less the mean of text placebos", signed=True),
    _beside("auroc_over_code", "over code placebos", "that less the mean of code placebos", signed=True),
    _beside("auroc_rank", "above random", "share of random directions that it lies above"),
    _beside("auroc_oracle", "AUROC, oracle", "AUROC of a direction fitted on other problems' rollouts"),
    _beside("auroc_ceiling", "AUROC, ceiling", CEILING),
    _beside("auroc_unmatched", "AUROC, unmatched", "AUROC over all pairs, whatever problem, step and length"),
    *(
        _beside(f"auroc_alignment_{at}", f"{GRADIENT}, {at}", f"{GRADIENT}'s alignment at {at}")
        for at in ("first", "last")
    ),
    _beside("recall_last", "recall", "recall at the threshold of step 0 in the last five steps"),
    _beside("t4", "T4", "t of wrong against right hacks along the basis, in a replay of the pool", unit="t"),
    _beside("overlap_fresh", "overlap with fresh", "overlap of the frozen V with one extracted at the end"),
    _beside("overlap_losses", "overlap of losses", "overlap of the GRPO basis with the NLL's", 0),
    _beside(
        "overlap_reweighted", "reweighted", "overlap with the NLL basis whose pairs are weighted by length", 0
    ),
    _beside("overlap", "overlap", "overlap of the row's axes with those of the exploits' own pairs"),
    _beside(
        "cosine",
        "cosine",
        "cosine of the mean differences of the row's pairs and the exploits' own",
        unit="cosine",
    ),
    _other("start_hack", "hack at first", "hack rate of the first step", _first(1, "hack_s")),
    _other("early_hack", "hack, early", "hack rate of the first two steps", _first(2, "hack_s")),
    _other("start_solve", "solve at first", "solve rate of the first step", _first(1, "solve_s")),
)
MEASURES = {measure.name: measure for measure in _ALL}
# Files of a run that tables are made of; it counts where it has its steps and its record.
FILES = tuple(dict.fromkeys((STEPS, RECORD, *(each.file for each in _ALL if each.file != BESIDE))))
