"""The marks of the self-taught critic, on made-up rounds."""

from dataclasses import replace

import pandas as pd
import pytest
from figures import spilled

from projected_grpo.verdicts.critic_rounds import curves, hardness, marks, outcome, shares

CREDITS = ("weak_false_credit", "weak_missed_credit")


def errors_of(rounds):
    """What `oracle.errors` says: (false credit, missed credit, share of the commonest score) by round, 0 is before."""
    rows = []
    for number, (false, missed, same) in enumerate(rounds):
        row = {"round": number, "condition": "trained on cards" if number else "before", "same_score": same}
        rows += [row | dict(zip(CREDITS, (false, missed), strict=True))]
        rows += [row | dict.fromkeys((*CREDITS, "same_score"), 1.0) | {"condition": "cards in context"}]
    return pd.DataFrame(rows)


def run_of(seed, pairs, pools):
    both = enumerate(zip(pairs, pools, strict=True), 1)
    return {"seed": seed, "rounds": [{"round": n, "hardness": a, "pool_hardness": b} for n, (a, b) in both]}


GOOD = {
    1: errors_of([(0.3, 0.0, 0.5), (0.2, 0.4, 0.6), (0.1, 0.1, 0.5)]),
    2: errors_of([(0.3, 0.0, 0.5), (0.2, 0.2, 0.7), (0.0, 0.1, 0.5)]),
}
RUNS = [run_of(1, (1.0, 3.0), (1.0, 1.0)), run_of(2, (2.0, 3.0), (1.0, 1.5))]


def test_all_marks_are_met_by_falling_credits_spread_scores_and_harder_pairs():
    found = marks(GOOD, RUNS)
    assert [mark.met for mark in found] == [True] * 4
    assert outcome(found) == "signs alone"  # 0 of 3 changes can be told from none
    sure = [replace(mark, told=mark.told if mark.told is None else True) for mark in found]
    assert outcome(sure) == "improves"
    assert (found[0].first, found[0].last) == pytest.approx((0.2, 0.05))
    assert (found[1].first, found[1].last) == pytest.approx((0.3, 0.1))  # means over both replications
    assert found[2].at == 1 and found[2].first == pytest.approx(0.65)
    assert (found[3].first, found[3].last) == pytest.approx((0.5, 1.75))
    # Both seeds fall, but two seeds that differ tell nothing of the mean.
    assert found[0].pair.n == 2 and found[0].told is False and found[0].path == pytest.approx((0.2, 0.05))
    told = marks(
        {n: errors_of([(0.3, 0.0, 0.5), (0.2, 0.4, 0.6), (0.1, 0.1 + n / 100, 0.5)]) for n in range(8)}, RUNS
    )
    assert told[1].told and told[1].met and outcome(told) == "signs alone"
    assert hardness(RUNS) == {1: {1: 0.0, 2: 1.0}, 2: {1: 2.0, 2: 1.5}}


@pytest.mark.parametrize(
    ("rounds", "wrong"),
    [
        ([(0.3, 0.0, 0.5), (0.2, 0.4, 0.6), (0.2, 0.1, 0.5)], 0),
        ([(0.3, 0.0, 0.5), (0.2, 0.4, 0.6), (0.1, 0.6, 0.5)], 1),
        ([(0.3, 0.0, 0.9), (0.2, 0.4, 0.8), (0.1, 0.1, 0.5)], 2),
    ],
)
def test_each_mark_can_fail_alone(rounds, wrong):
    found = marks({1: errors_of(rounds)}, RUNS)
    assert [mark.met for mark in found] == [i != wrong for i in range(4)]
    assert outcome(found) == "degenerate"


def test_what_cannot_be_told_is_said_so():
    one = marks({1: errors_of([(0.3, 0.0, 0.5), (0.2, 0.4, 0.6)])}, [{"seed": 1, "rounds": [{"round": 1}]}])
    assert [mark.met for mark in one] == [None, None, True, None] and outcome(one) == "open"
    assert marks(GOOD, [run_of(1, (3.0, 1.0), (1.0, 1.0))])[3].met is False


def test_shares_of_scores_are_means_over_replications():
    def said(*phis):
        return pd.DataFrame({"round": 1, "condition": "trained on cards", "phi": phis}).astype({"phi": float})

    found = shares({1: said(2, 2, 10, None), 2: said(0, 2)})
    assert found.loc[1].to_dict() == pytest.approx({0.0: 1 / 4, 2.0: (2 / 3 + 1 / 2) / 2, 10.0: 1 / 6})
    drawing = curves(GOOD, {1: said(2, 2, 10, None), 2: said(0, 2)}, RUNS)
    drawn = [axes for axes in drawing.axes if axes.get_visible()]
    assert len(drawn) == 3 and not spilled(drawing)
    lines = sorted(line.get_ydata().tolist()[0] for line in drawn[1].get_lines())
    assert lines == pytest.approx(sorted(found.loc[1]))
