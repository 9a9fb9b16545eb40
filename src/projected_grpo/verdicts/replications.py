"""T1-T4 on every replication, and all of them as one: a replication is the unit, as in every table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from projected_grpo.measures import stats
from projected_grpo.measures.replays import Replay, Sides, t4, t4_within
from projected_grpo.pages.words import NONE, interval, p_value, signed, table
from projected_grpo.verdicts.marks import Mark, marks

ALL = "all"
# T4 as it is asked of all replications; kinds of problem have no say in the last reading.
READINGS: dict[str, Callable[[Replay], Sides]] = {
    "every sample (the paper's)": lambda replay: t4(replay.samples),
    "at the untrained student": lambda replay: t4(replay.samples, "cos_S_start"),
    "differences within problems": lambda replay: t4_within(replay.samples),
}


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


def _cells(name: str, found: Sequence[tuple[float | None, bool]], digits: int) -> str:
    """Return the mean of values and where their mark is met."""
    values = [value for value, _ in found if value is not None]
    met = sum(passed for _, passed in found)
    word = f"PASS on {met} of {len(found)}" if name == ALL else ("FAIL" if values else "no p", "PASS")[met]
    return f"{np.mean(values):.{digits}f} ({word})" if values else f"{NONE} ({word})"


def replications_table(probed: Sequence[Probed], own: str) -> str:
    """Return each replication's figures of T1-T4, T4 of other bases beside, and the mean of all.

    own: the probe's basis.
    """
    others = list(probed[0].others)
    lines = []
    for name, some in [*((one.name, [one]) for one in probed), (ALL, probed)]:
        marks_of = [[(one.marks[i].value, one.marks[i].passed) for one in some] for i in range(4)]
        sides = [[t4(one.others[basis].samples) for one in some] for basis in others]
        rest = [[(side.t, side.passed) for side in own_sides] for own_sides in sides]
        cells = [_cells(name, found, 2 if i == 3 else 3) for i, found in enumerate(marks_of)]
        lines.append([name, *cells, *(_cells(name, found, 2) for found in rest)])
    head = ["replication", "T1, hacked", "T2, finite", "T3, steps lowered", f"T4, {own}"]
    return table([*head, *(f"T4, {basis}" for basis in others)], lines)


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


def gaps_table(found: Sequence[Gap], control: str | None) -> str:
    """Return T4 of all replications as one, and how far it lies beyond the basis without content."""

    def test(pair: stats.Paired | None) -> list[str]:
        if pair is None:
            return [NONE, NONE]
        text = f"{signed(pair.delta)} {interval(pair.lo, pair.hi)} n = {pair.n}"
        return [" ".join(text.split()), p_value(pair.holm)]

    head = ["basis", "reading", "meets the mark", "gap", "Holm p"]
    head += [f"less that of {control}", "Holm p"] if control else []
    rows = [
        [
            gap.basis,
            gap.reading,
            f"{gap.met} of {gap.asked}",
            *test(gap.own),
            *(test(gap.beyond) if control else []),
        ]
        for gap in found
    ]
    return table(head, rows, 2)
