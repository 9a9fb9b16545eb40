"""Whether the self-taught critic is degenerate, by the marks of docs/self_taught.md, and its curves over rounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from projected_grpo.evaluator.oracle import BEFORE, WEAK
from projected_grpo.evaluator.rounds import IN_CONTEXT, TRAINED
from projected_grpo.measures import stats
from projected_grpo.pages import style
from projected_grpo.pages.text import NONE, paired_text, rate

WEAK_CREDITS = {"weak_false_credit": "false credit", "weak_missed_credit": "missed credit"}
MOST = 0.7  # of the traces may get one score
CAPTION = (
    "Held-out problems, means over replications (dots: each); round 0 is before calibration. Left: credit against the "
    "weak score. Middle: share of traces by the score they get; thin line: the most that one may get. Right: how hard "
    "a round's accepted pairs are for a reference critic outside the rounds (its distance to the correct score, "
    "less that over the round's pool)."
)
Rounds = Mapping[int, Mapping[int, float]]  # round -> seed -> value
Seeds = Mapping[int, pd.DataFrame]  # seed -> `oracle.errors`, or -> evaluations


@dataclass(frozen=True)
class Mark:
    """One of the marks: whether it is met (None: cannot be told) and in a sentence why.

    The mark of a change asks for the sign of its mean alone; told: whether the change can be told from none, too.
    """

    met: bool | None
    said: str
    told: bool | None = None


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
    return [*(_falls(measured, name) for name in WEAK_CREDITS), _spread(measured), _harder(runs)]


def sentence(found: Sequence[Mark]) -> str:
    """What the marks say together."""
    if any(mark.met is False for mark in found):
        return "By the marks set beforehand the critic is not free of degeneracy."
    if any(mark.met is None for mark in found):
        return "Not all marks set beforehand can be told from these runs."
    changes = [mark.told for mark in found if mark.told is not None]
    if all(changes):
        return "By the marks set beforehand the critic is not degenerate; each change can be told from none."
    # The signs of three changes that are none agree with the marks one time in eight.
    counted = f"{sum(changes)} of {len(changes)} changes can be told from none"
    text = "The marks set beforehand, which ask for the signs of changes alone, are met."
    return f"Whether the critic improves over rounds is not shown: {counted}. {text}"


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


def _told(pair: stats.Paired) -> str:
    """Return a difference, its n, and whether it can be told from none."""
    return f"({paired_text(pair)}, n = {pair.n}{'' if pair.is_told else '; not told from no change'})"


def _mean(values: Mapping[int, float]) -> float:
    return sum(values.values()) / len(values)


def _falls(measured: Seeds, name: str) -> Mark:
    values = by_round(measured, name)
    found = _first_and_last(values)
    if found is None:
        return Mark(None, f"{WEAK_CREDITS[name]} against the weak score has no two rounds to compare")
    first, last, pair = found
    verb = "falls" if pair.delta < 0 else "does not fall"
    between = f"from {rate(_mean(first))} after the first round to {rate(_mean(last))} after the last"
    said = f"{WEAK_CREDITS[name]} against the weak score {verb}: {between} {_told(pair)}"
    path = ", ".join(rate(_mean(own)) for own in since_calibration(values).values())
    return Mark(pair.delta < 0, f"{said}; round by round {path}", pair.is_told)


def _spread(measured: Seeds) -> Mark:
    given = since_calibration(by_round(measured, "same_score"))
    shares = {number: _mean(own) for number, own in given.items()}
    if not shares:
        return Mark(None, "no calibrated critic gave a score")
    most = max(shares, key=shares.get)
    said = f"in round {most} one score goes to {rate(shares[most])} of the traces, the most of all (mark: {MOST})"
    weak = [frame.loc[frame["condition"] == WEAK, "same_score"].dropna() for frame in measured.values()]
    weak = pd.concat(weak) if weak else pd.Series(dtype=float)
    own = (
        f"; the correct scores do so to {rate(weak.mean())}, as kinds of traces take turns"
        if len(weak)
        else ""
    )
    return Mark(shares[most] <= MOST, said + own)


def _harder(runs: Sequence[Mapping]) -> Mark:
    values = hardness(runs)
    found = _first_and_last(values)
    if found is None:
        return Mark(None, "how hard the pairs are cannot be compared")
    first, last, pair = found
    verb = "harder" if pair.delta > 0 else "not harder"
    between = (
        f"{_mean(first):+.2f} points against their pool in the first round, {_mean(last):+.2f} in the last"
    )
    said = f"accepted pairs get {verb}: {between} {_told(pair)}; round by round "
    said += ", ".join(f"{_mean(own):+.2f}" for own in values.values())
    # In the first round the critic believes the grader, so that its errors are alike and few are told apart.
    since = _first_and_last({number: own for number, own in values.items() if number > min(values)})
    said += f"; since the second round {_told(since[2])}" if since else ""
    return Mark(pair.delta > 0, said, pair.is_told)


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
    """Credit, scores given and hardness over rounds; None where no trace has a score."""
    given = shares(evaluations)
    if given.empty:
        return None
    with style.styled():
        drawing = style.figure(2.9)
        left, middle, right = drawing.subplots(1, 3)
        for i, (name, label) in enumerate(WEAK_CREDITS.items()):
            _curve(left, by_round(measured, name), label, i)
        style.rate_axis(left)
        left.set_title("credit")
        left.legend(fontsize=7)
        for i, score in enumerate(given):
            middle.plot(
                given.index, given[score], label=f"{score:g}", marker="o", markersize=3, **style.look(i)
            )
        middle.axhline(MOST, color=style.SOFT, linewidth=0.8)
        style.rate_axis(middle)
        middle.set_title("scores given")
        style.legend_below(middle, 0.3, ncols=3, handlelength=1.8, columnspacing=0.8)
        _curve(right, hardness(runs), "accepted pairs", 2)
        right.axhline(0, color=style.SOFT, linewidth=0.8)
        right.set_title("hardness, points")
        for axes in (left, middle, right):
            axes.set_xlabel("round")
            axes.xaxis.get_major_locator().set_params(integer=True)
        return drawing


def _curve(axes, values: Rounds, label: str, i: int) -> None:
    if values:
        axes.plot(list(values), [_mean(own) for own in values.values()], label=label, **style.look(i))
        for number, own in values.items():
            axes.plot(
                [number] * len(own), list(own.values()), "o", color=style.PALETTE[i], alpha=0.3, markersize=3
            )


def hard(done: Mapping) -> str:
    """A round's hardness as the page's table says it: `1.250 (pool 0.500)`."""
    pair, pool = done.get("hardness"), done.get("pool_hardness")
    return NONE if pair is None or pool is None else f"{rate(pair)} (pool {rate(pool)})"
