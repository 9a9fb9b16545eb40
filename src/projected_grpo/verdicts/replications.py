"""T1-T4 on every replication, and all of them as one: a replication is the unit, as in every table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from projected_grpo.measures import stats
from projected_grpo.measures.replays import Replay, Sides, t4, t4_within
from projected_grpo.pages.blocks import Cell, Grid, grid
from projected_grpo.pages.text import NONE, is_shown, p_value, paired_text, rate, with_p
from projected_grpo.verdicts.marks import Mark, marks

ALL = "all"
# T4 as it is asked of all replications; kinds of problem have no say in the last reading.
READINGS: dict[str, Callable[[Replay], Sides]] = {
    "every sample (the paper's)": lambda replay: t4(replay.samples),
    "at the untrained student": lambda replay: t4(replay.samples, "cos_S_start"),
    "differences within problems": lambda replay: t4_within(replay.samples),
}
READ = (
    "Each replication has a base, a teacher, a pool and bases of its own; the last row is their mean, with the number "
    "of those that meet the mark.",
    "Gap: alignment, as a share of its bound sqrt(modules), at gt_pass = 0 less that at gt_pass = 1 in a replication "
    "where T4 has a t; then the mean over those n with its 95% t-interval. Against a basis without content gaps are "
    "paired by replication. Holm's p is over a column.",
)


@dataclass(frozen=True)
class Probed:
    """The replays of one replication: of the probe's own basis, and vanilla ones of other bases on the same pool."""

    seed: int
    vanilla: Replay
    projected: Replay
    others: Mapping[str, Replay]

    @property
    def name(self) -> str:
        return f"seed {self.seed}"

    @property
    def replays(self) -> list[Replay]:
        return [self.vanilla, self.projected, *self.others.values()]

    @cached_property
    def marks(self) -> list[Mark]:
        return marks(self.vanilla, self.projected)

    def by_basis(self, own: str) -> dict[str, Replay]:
        """Return basis -> its vanilla replay, the probe's `own` first."""
        return {own: self.vanilla, **self.others}


def _figure(of: Callable[[Probed], tuple[float | None, bool]], form: Callable[[float], str]):
    """Return a column of rows (name, replications): the mean of what `of` says, and where the mark is met."""

    def cell(row: tuple[str, Sequence[Probed]]) -> Cell:
        name, found = row[0], [of(one) for one in row[1]]
        values = [value for value, _ in found if value is not None]
        met = sum(passed for _, passed in found)
        word = (
            f"PASS on {met} of {len(found)}" if name == ALL else ("FAIL" if values else "no p", "PASS")[met]
        )
        return Cell(form(float(np.mean(values))) if values else NONE, word, strong=name == ALL)

    return cell


def replications_grid(probed: Sequence[Probed], own: str) -> Grid:
    """Return each replication's figures of T1-T4, T4 of other bases beside, and the mean of all.

    own: the probe's basis.
    """

    def of_mark(place: int):
        return lambda one: (one.marks[place].value, one.marks[place].passed)

    def of_basis(name: str):
        sides = {one.seed: t4(one.others[name].samples) for one in probed}
        return lambda one: (sides[one.seed].t, sides[one.seed].passed)

    def two(value: float) -> str:
        return f"{value:.2f}"

    heads = {"T1, hacked": rate, "T2, finite": rate, "T3, steps lowered": rate, f"T4, {own}": two}
    columns = {"replication": lambda row: row[0]}
    columns |= {head: _figure(of_mark(place), form) for place, (head, form) in enumerate(heads.items())}
    columns |= {f"T4, {name}": _figure(of_basis(name), two) for name in probed[0].others}
    rows = [*((one.name, [one]) for one in probed), (ALL, probed)]
    return grid(rows, columns, title="T1-T4 on every replication (T4: Welch's t)")


def t4s(probed: Sequence[Probed], own: str, basis: str) -> dict[int, float]:
    """Return seed -> T4's t of a basis, where it has one."""
    found = {one.seed: t4(one.by_basis(own)[basis].samples).t for one in probed}
    return {seed: t for seed, t in found.items() if t is not None}


@dataclass(frozen=True)
class Gap:
    """T4 of one basis in one reading over all replications: how far wrong hacks lie above right ones."""

    basis: str
    reading: str
    by_seed: Mapping[int, float]
    met: int
    asked: int
    own: stats.Paired | None
    beyond: stats.Paired | None  # against a basis without content

    def row(self) -> dict:
        """Return it as a row of the page's Parquet."""
        row = {"test": "T4, all", "basis": self.basis, "reading": self.reading, "met": self.met}
        for name, pair in (("gap", self.own), ("beyond", self.beyond)):
            if pair is not None:
                row |= {name: pair.delta, f"{name}_lo": pair.lo, f"{name}_hi": pair.hi, f"{name}_n": pair.n}
                row[f"p_{name}_holm"] = pair.holm
        return row


def gaps(probed: Sequence[Probed], own: str, control: str | None) -> list[Gap]:
    """Return T4's gaps of every basis in every reading, tested against none and against those of `control`."""
    found = []
    for basis in probed[0].by_basis(own):
        for reading, of in READINGS.items():
            replays = {one.seed: one.by_basis(own)[basis] for one in probed}
            sides = {seed: of(replay) for seed, replay in replays.items()}
            by_seed = {
                seed: (side.mean_wrong - side.mean_right) / replays[seed].bound
                for seed, side in sides.items()
                if side.t is not None
            }
            met = sum(side.passed for side in sides.values())
            found.append((basis, reading, by_seed, met, len(sides)))
    plain = {reading: by_seed for basis, reading, by_seed, *_ in found if basis == control}
    alone = stats.adjust([stats.one_sample(by_seed) for _, _, by_seed, *_ in found])
    beyond = stats.adjust(
        [
            None if basis == control or reading not in plain else stats.paired(by_seed, plain[reading])
            for basis, reading, by_seed, *_ in found
        ]
    )
    return [Gap(*row, *tests) for row, *tests in zip(found, alone, beyond, strict=True)]


def gaps_grid(found: Sequence[Gap], control: str | None) -> Grid:
    """Return T4 of all replications as one, and how far it lies beyond the basis without content."""

    def holm(pair: stats.Paired | None) -> Cell:
        return Cell(p_value(pair and pair.holm), strong=is_shown(pair))

    def test(pair: stats.Paired | None) -> Cell:
        return Cell(paired_text(pair), f"n = {pair.n}" if pair else "")

    columns = {
        "basis": lambda gap: gap.basis,
        "reading": lambda gap: gap.reading,
        "meets the mark": lambda gap: f"{gap.met} of {gap.asked}",
        "gap": lambda gap: test(gap.own),
        "Holm p": lambda gap: holm(gap.own),
    }
    if control:
        columns |= {
            f"less that of {control}": lambda gap: test(gap.beyond),
            "Holm p ": lambda gap: holm(gap.beyond),
        }
    return grid(found, columns, texts=2, title="T4, all replications as one")


def sentences(probed: Sequence[Probed], found: Sequence[Gap], control: str | None) -> tuple[str, ...]:
    """Say of each test on how many replications its mark is met, and of T4 what all of them show."""
    n, said = len(probed), []
    for place, mark in enumerate(probed[0].marks):
        met = sum(one.marks[place].passed for one in probed)
        values = [value for one in probed if (value := one.marks[place].value) is not None]
        mean = f"{np.mean(values):.3f}" if values else NONE
        text = f"{mark.test}, {mark.requirement}: PASS on {met} of {n} replications, mean {mark.unit} {mean}"
        said.append(f"{text}{f' ({n - len(values)} without one)' if len(values) < n else ''}.")
    first = next(iter(READINGS))
    for gap in (gap for gap in found if gap.reading == first):
        if gap.own is None:
            continue
        text = f"T4's gap of `{gap.basis}` over all: {with_p(gap.own)}, n = {gap.own.n}"
        if gap.beyond is not None:
            apart = (
                ("below", "beyond")[gap.beyond.delta > 0] if is_shown(gap.beyond) else "not told apart from"
            )
            text += f"; {apart} that of `{control}` ({with_p(gap.beyond)}, n = {gap.beyond.n})"
        said.append(f"{text}.")
    return tuple(said)
