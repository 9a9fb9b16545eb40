"""Whether the self-taught critic is degenerate, by the marks of docs/self_taught.md, and its curves over rounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from projected_grpo.evaluator.oracle import BEFORE, WEAK
from projected_grpo.evaluator.rounds import IN_CONTEXT, TRAINED
from projected_grpo.measures import stats
from projected_grpo.pages.figures import Line, trajectories

WEAK_CREDITS = {"weak_false_credit": "false credit", "weak_missed_credit": "missed credit"}
MOST = 0.7  # of the traces may get one score
Rounds = Mapping[int, Mapping[int, float]]  # round -> seed -> value
Seeds = Mapping[int, pd.DataFrame]  # seed -> `oracle.errors`, or -> evaluations


@dataclass(frozen=True)
class Mark:
    """One of the marks: whether it is met (None: cannot be told), and the numbers that say so.

    The mark of a change asks for the sign of its mean alone; told: whether the change can be told from none, too.
    first, last: means after the first round and the last; path: means round by round; since: the change since the
    second round, where the mark has one; of a share, `at` is the round with the largest, `weak` the correct scores'.
    """

    name: str
    met: bool | None
    told: bool | None = None
    first: float | None = None
    last: float | None = None
    pair: stats.Paired | None = None
    path: tuple[float, ...] = ()
    since: stats.Paired | None = None
    at: int | None = None
    weak: float | None = None


def calibrated(frame: pd.DataFrame) -> str:
    """The condition that shows the calibrated critic: its training where it has one, else its cards."""
    return TRAINED if (frame["condition"] == TRAINED).any() else IN_CONTEXT


def by_round(measured: Seeds, name: str) -> dict[int, dict[int, float]]:
    """A measure of `oracle.errors` as round -> seed -> value; round 0 is before calibration."""
    found: dict[int, dict[int, float]] = {}
    for seed, frame in measured.items():
        own = frame[frame["condition"].isin([BEFORE, calibrated(frame)])].dropna(subset=[name])
        for number, value in zip(own["round"], own[name], strict=True):
            found.setdefault(int(number), {})[seed] = float(value)
    return dict(sorted(found.items()))


def hardness(runs: Sequence[Mapping]) -> dict[int, dict[int, float]]:
    """Round -> seed -> the reference's error on the accepted pairs less that on the pool; empty without reference."""
    found: dict[int, dict[int, float]] = {}
    for run in runs:
        for done in run["rounds"]:
            pair, pool = done.get("hardness"), done.get("pool_hardness")
            if pair is not None and pool is not None:
                found.setdefault(done["round"], {})[run["seed"]] = pair - pool
    return dict(sorted(found.items()))


def marks(measured: Seeds, runs: Sequence[Mapping]) -> list[Mark]:
    """Credit, spread and hardness."""
    credits = [_change(name, by_round(measured, name), -1) for name in WEAK_CREDITS]
    return [*credits, _spread(measured), _harder(runs)]


def outcome(found: Sequence[Mark]) -> str:
    """Return what the marks say together: `degenerate`, `open`, `improves`, or `signs alone`."""
    if any(mark.met is False for mark in found):
        return "degenerate"
    if any(mark.met is None for mark in found):
        return "open"
    return "improves" if all(mark.told for mark in found if mark.told is not None) else "signs alone"


def since_calibration(values: Rounds) -> Rounds:
    """Return the rounds without 0, which is before calibration."""
    return {number: own for number, own in values.items() if number > 0}


def ends(values: Rounds) -> tuple[Mapping[int, float], Mapping[int, float]] | None:
    """Return seed -> value of the first round after calibration began and of the last; None below two such rounds."""
    rounds = list(since_calibration(values).values())
    return (rounds[0], rounds[-1]) if len(rounds) > 1 else None


def _first_and_last(values: Rounds) -> tuple[Mapping, Mapping, stats.Paired] | None:
    """Return `ends`, and last - first over the seeds of both."""
    both = ends(values)
    pair = stats.paired(both[1], both[0]) if both else None
    return None if pair is None else (*both, pair)


def _mean(values: Mapping[int, float]) -> float:
    return sum(values.values()) / len(values)


def _change(name: str, values: Rounds, sign: int) -> Mark:
    """Return the mark of a change; sign: of the change that is wanted."""
    found = _first_and_last(values)
    if found is None:
        return Mark(name, None)
    first, last, pair = found
    path = tuple(_mean(own) for own in since_calibration(values).values())
    return Mark(name, pair.delta * sign > 0, pair.is_told, _mean(first), _mean(last), pair, path)


def _spread(measured: Seeds) -> Mark:
    given = since_calibration(by_round(measured, "same_score"))
    found = {number: _mean(own) for number, own in given.items()}
    if not found:
        return Mark("spread", None)
    most = max(found, key=found.get)
    weak = [frame.loc[frame["condition"] == WEAK, "same_score"].dropna() for frame in measured.values()]
    mean = float(pd.concat(weak).mean()) if any(len(own) for own in weak) else None
    return Mark("spread", found[most] <= MOST, first=found[most], at=most, weak=mean)


def _harder(runs: Sequence[Mapping]) -> Mark:
    values = hardness(runs)
    mark = _change("hardness", values, 1)
    if not values:
        return mark
    # In the first round the critic believes the grader, so that its errors are alike and few are told apart.
    since = _first_and_last({number: own for number, own in values.items() if number > min(values)})
    return replace(mark, since=since[2] if since else None)


def shares(evaluations: Seeds) -> pd.DataFrame:
    """Share of each whole score by round (rows) and score (columns), mean over seeds; unanswered traces left out."""
    parts = []
    for frame in evaluations.values():
        own = frame[frame["condition"].isin([BEFORE, calibrated(frame)])].dropna(subset=["phi"])
        own = own.assign(phi=own["phi"].astype(float).round())
        parts.append(own.groupby("round")["phi"].value_counts(normalize=True).unstack(fill_value=0.0))
    whole = pd.concat(parts).fillna(0.0)
    return whole.groupby(level=0).mean()


def curves(measured: Seeds, evaluations: Seeds, runs: Sequence[Mapping]) -> Figure | None:
    """Return credit, scores given and hardness over rounds; None where no trace has a score."""
    given = shares(evaluations)
    if given.empty:
        return None
    panels: dict[str, dict[str, Line]] = {
        "credit": {label: _line(by_round(measured, name)) for name, label in WEAK_CREDITS.items()},
        "scores given": {
            f"score {score:g}": _bare(given.index.to_numpy(), given[score].to_numpy()) for score in given
        },
    }
    if hard := hardness(runs):
        panels["hardness"] = {"accepted pairs": _line(hard)}
    return trajectories(panels, "round", rates=False)


def _bare(x: np.ndarray, mean: np.ndarray) -> Line:
    return x, mean, np.full(len(x), np.nan), np.full(len(x), np.nan)


def _line(values: Rounds) -> Line:
    """Return means over replications by round with their 95% t-intervals."""
    every = [stats.summarise(list(own.values())) for own in values.values()]
    ends = (
        [np.nan if getattr(one, key) is None else getattr(one, key) for one in every] for key in ("lo", "hi")
    )
    lo, hi = (np.array(own) for own in ends)
    return np.array(list(values)), np.array([one.mean for one in every]), lo, hi
