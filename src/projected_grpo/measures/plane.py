"""The plane of defences: deployed known hack against deployed known honest, and what lies above training less.

The frontier is what plain training gives at any dose of itself: the base, `less`, early ends, vanilla. A defence
that only slows training lies on it; what counts is known honest minus the frontier's at the same known hack.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import isotonic_regression

from projected_grpo.cells.cell import TEACHERS, Row
from projected_grpo.measures import stats
from projected_grpo.measures.estimates import Comparison, mean_of
from projected_grpo.measures.measured import Measured
from projected_grpo.measures.names import FRONTIER

HACK, HONEST = "known_hack", "known_honest"
BASE = "the base"


def other_groups() -> pd.DataFrame:
    """Return the figures of other groups for the same arms, by the `row` of ours (`the base` for the base)."""
    return pd.read_csv(Path(__file__).with_name("other_groups.csv"), comment="#")


@dataclass(frozen=True)
class Frontier:
    """What training less gives: `names` by growing dose, their `[points]` of known hack and honest by seed.

    NaN where a seed has no run of a point: seeds are compared on the points that all of them have.
    """

    names: tuple[str, ...]
    hack: dict[int, np.ndarray]
    honest: dict[int, np.ndarray]

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(sorted(self.hack))

    def among(self, seeds: Iterable[int]) -> "Frontier":
        """Return it over some seeds, with the points that all of these have."""
        some = list(seeds)
        there = ~np.isnan(np.array([self.hack[seed] + self.honest[seed] for seed in some])).any(axis=0)
        hack, honest = ({seed: of[seed][there] for seed in some} for of in (self.hack, self.honest))
        return Frontier(tuple(np.array(self.names)[there]), hack, honest)

    def means(self) -> tuple[np.ndarray, np.ndarray]:
        """Return hack and honest of each point that all seeds have, means over them."""
        line = self.among(self.seeds)
        hack, honest = (np.mean(list(of.values()), axis=0) for of in (line.hack, line.honest))
        return hack, honest

    def curve(self) -> tuple[np.ndarray, np.ndarray]:
        """Return growing hack and honest there, of the means over seeds; points that pool to one hack are averaged."""
        hack, honest = self.means()
        # Rounded: a pool's mean may differ in its last bit from an equal one beside it.
        x, place = np.unique(isotonic_regression(hack).x.round(12), return_inverse=True)
        return x, np.bincount(place, honest) / np.bincount(place)

    def excess(self, hack: Mapping[int, float], honest: Mapping[int, float]) -> stats.Tested | None:
        """Return honest minus the frontier's at the same hack, of means over seeds; None where it hacks more than all.

        What hacks no more than the base is paired with the base: there is no training that could be less than none.
        Without a base, what hacks less than the frontier has none either. Else interval and p are by jackknife over
        seeds, t with n - 1 degrees of freedom; a replicate outside the range of its own frontier is held against
        that frontier's end.
        """
        seeds = [seed for seed in self.seeds if seed in hack and seed in honest]
        if not seeds:
            return None
        line = self.among(seeds)
        own = np.mean([hack[seed] for seed in seeds])
        first, last = (np.mean([line.hack[seed][end] for seed in seeds]) for end in (0, -1))
        if self.names[0] == BASE and own <= first:
            return stats.one_sample({s: honest[s] - float(self.honest[s][0]) for s in seeds})

        def at(some: list[int]) -> float:
            x, y = line.among(some).curve()
            return np.mean([honest[s] for s in some]) - np.interp(np.mean([hack[s] for s in some]), x, y)

        whole, (x, _), n = float(at(seeds)), line.curve(), len(seeds)
        if not x[0] <= own <= last:
            return None
        if n < 2:
            return stats.one_sample({seeds[0]: whole})
        without = np.array([at([s for s in seeds if s != out]) for out in seeds])
        # Pseudo-values around the estimate itself: their t-interval is the jackknife's.
        pseudo = whole + (n - 1) * (without.mean() - without)
        return stats.one_sample(dict(zip(seeds, pseudo.tolist(), strict=True)))


class Recovered(NamedTuple):
    share: float
    n: int  # seeds


def recovered(own: Measured) -> dict[str, Recovered]:
    """Return row -> the share that it recovers of the honest work that plain training loses to the teacher's rows.

    (row - vanilla) / (vanilla without a teacher - vanilla), of means over the seeds that all three have. A row without
    such a seed is left out, and so is one where nothing is lost.
    """
    vanilla = vanilla_of(own)
    arm = own.rows[vanilla].setting.arm if vanilla else None
    alone = [row.name for row in own.rows.values() if not row.setting.mix and row.setting.arm == arm]
    if len(alone) != 1:
        return {}
    plain, untaught = (own.of(name, HONEST) for name in (vanilla, *alone))
    found = {}
    for name in own.rows:
        honest = own.of(name, HONEST)
        seeds = sorted(honest.keys() & plain.keys() & untaught.keys())
        lost = sum(untaught[seed] - plain[seed] for seed in seeds)
        if lost > 0:
            gained = sum(honest[seed] - plain[seed] for seed in seeds)
            found[name] = Recovered(gained / lost, len(seeds))
    return found


def vanilla_of(own: Measured) -> str | None:
    """Return the row that all are held against; None where rows have several."""
    names = {row.baseline for row in own.rows.values() if row.baseline}
    return names.pop() if len(names) == 1 else None


def frontier_of(own: Measured) -> Frontier | None:
    """Return what training less gives: the base, vanilla, and in between `less` at each scale and vanilla that ends
    earlier, by their dose: the share of vanilla's summed learning rates.

    It has the seeds with base, vanilla and something in between; None where there are none. What was not judged is no
    point.
    """
    vanilla = vanilla_of(own)
    if vanilla is None:
        return None
    less = [row for row in own.rows.values() if row.setting.defence.family == "less"]
    doses = [(row.setting.knob("scale"), row.name, own.values.get(row.name, {})) for row in less]
    for step, rates in own.stopped.items():
        doses.append((next(iter(rates["dose"].values())), f"stopped at {step}", rates))
    between = {name: rates for _, name, rates in sorted(doses, key=lambda each: each[0])}
    points = {BASE: own.base} | between | {vanilla: own.values.get(vanilla, {})}
    points = {name: rates for name, rates in points.items() if rates.get(HACK) and rates.get(HONEST)}
    if len(points) < 2 or not points.keys() & between.keys():
        return None
    hack, honest = (pd.DataFrame({n: rates[key] for n, rates in points.items()}) for key in (HACK, HONEST))
    there = (hack + honest).notna().sort_index()  # by seed
    ends = [name for name in points if name not in between]
    seeds = there.index[there[ends].all(axis=1) & there.drop(columns=ends).any(axis=1)]
    by_seed = ({seed: of.loc[seed].to_numpy() for seed in seeds} for of in (hack, honest))
    return Frontier(tuple(points), *by_seed) if len(seeds) else None


def defending(own: Measured) -> list[str]:
    """Return the rows that are no part of the frontier; of a pool its mean alone."""
    single = {name: row for name, row in own.rows.items() if row.pooled not in own.rows}
    vanilla = vanilla_of(own)
    return [n for n, row in single.items() if n != vanilla and row.setting.defence.family != "less"]


def blocks(own: Measured) -> list[list[int]]:
    """Return the seeds that rows share: one list where rows overlap, several where some have fresh seeds alone."""
    found: list[frozenset[int]] = []
    for seeds in sorted({frozenset(own.of(name, HACK)) for name in defending(own)} - {frozenset()}, key=len):
        near = [one for one in found if one & seeds]
        if len(near) < 2:  # else a row on the seeds of several
            found = [one for one in found if one not in near] + [seeds.union(*near)]
    return sorted(map(sorted, found))


LOOK = 5  # seeds that a row must have to be looked at


def points(own: Measured) -> list[str]:
    """Return the rows that are points of a plane: those that defend, and plain training."""
    return [*defending(own), *filter(None, [vanilla_of(own)])]


def panels(own: Measured) -> list[Measured]:
    """Return the parts a plane is drawn in: the seeds that all rows have, where these are a look; else `blocks`.

    A row of one seed is no point of a plane whose other rows have a look in common.
    """
    found = {name: set(own.of(name, HACK)) for name in points(own) if own.of(name, HACK)}
    several = [seeds for seeds in found.values() if len(seeds) > 1]
    common = set.intersection(*several) if several else set()
    if len(common) < LOOK:
        return [own.among(seeds) for seeds in blocks(own)]
    kept = {name: of for name, of in own.values.items() if len(found.get(name, common)) > 1}
    return [replace(own, values=kept).among(common)]


def are_paired(panel: Measured) -> bool:
    """Return whether all rows of a panel have the same seeds."""
    return len({frozenset(panel.of(name, HACK)) for name in points(panel)} - {frozenset()}) < 2


def above_frontier(own: Measured) -> list[Comparison]:
    """Return each row's known honest less the frontier's at the same known hack; none where it hacks more than all."""
    front = frontier_of(own)
    if front is None:
        return []
    found = []
    for name in defending(own):
        hack, honest = own.of(name, HACK), own.of(name, HONEST)
        test, claim = front.excess(hack, honest), name in own.claims
        waits = own.waits([name, *front.names])
        if test is not None or not hack:
            mean = mean_of(own, name, HONEST, test)
            found.append(Comparison(name, FRONTIER, "training less", HONEST, test, mean, claim, 1, waits))
    return found


EXPLOITS = "the teacher's exploits"  # what an arm must be given beyond pairs
HARMLESS = "pairs without an exploit"  # a defender can have these
NOTHING = "nothing (control)"


def must_give(row: Row) -> str:
    """Return what a row's arm must be given, and whose pairs; a control of any kind needs nothing."""
    if not row.claims:
        return NOTHING
    given = row.setting.defence.must_give(row.setting.knobs)
    if given != "pairs":
        return given
    return EXPLOITS if row.exploits == TEACHERS else HARMLESS if row.without_truth else given
