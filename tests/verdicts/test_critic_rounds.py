"""The marks of the self-taught critic, on made-up rounds."""

from dataclasses import replace

import pandas as pd
import pytest
from figures import spilled

from projected_grpo.verdicts.critic_rounds import curves, hardness, marks, sentence, shares

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
    assert sentence(found).startswith("Whether the critic improves over rounds is not shown: 0 of 3 changes")
    assert sentence(found).endswith(
        "The marks set beforehand, which ask for the signs of changes alone, are met."
    )
    sure = [replace(mark, told=mark.told if mark.told is None else True) for mark in found]
    assert "is not degenerate; each change can be told" in sentence(sure)
    assert "0.200 after the first round to 0.050 after the last" in found[0].said
    assert "0.300 after the first round to 0.100" in found[1].said  # means over both replications
    assert "round 1" in found[2].said and "0.650" in found[2].said
    assert "+0.50 points against their pool in the first round, +1.75 in the last" in found[3].said
    # Both seeds fall, but two seeds that differ tell nothing of the mean.
    assert "n = 2; not told from no change); round by round 0.200, 0.050" in found[0].said
    told = marks(
        {n: errors_of([(0.3, 0.0, 0.5), (0.2, 0.4, 0.6), (0.1, 0.1 + n / 100, 0.5)]) for n in range(8)}, RUNS
    )
    assert "not told" not in told[1].said and told[1].met and "1 of 3 changes" in sentence(told)
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
    assert "not free of degeneracy" in sentence(found)


def test_what_cannot_be_told_is_said_so():
    one = marks({1: errors_of([(0.3, 0.0, 0.5), (0.2, 0.4, 0.6)])}, [{"seed": 1, "rounds": [{"round": 1}]}])
    assert [mark.met for mark in one] == [None, None, True, None] and "Not all marks" in sentence(one)
    assert marks(GOOD, [run_of(1, (3.0, 1.0), (1.0, 1.0))])[3].met is False


def test_shares_of_scores_are_means_over_replications():
    def said(*phis):
        return pd.DataFrame({"round": 1, "condition": "trained on cards", "phi": phis}).astype({"phi": float})

    found = shares({1: said(2, 2, 10, None), 2: said(0, 2)})
    assert found.loc[1].to_dict() == pytest.approx({0.0: 1 / 4, 2.0: (2 / 3 + 1 / 2) / 2, 10.0: 1 / 6})
    drawing = curves(GOOD, {1: said(2, 2, 10, None), 2: said(0, 2)}, RUNS)
    assert len(drawing.axes) == 3 and not spilled(drawing)
    drawn = {line.get_label(): list(line.get_ydata()) for line in drawing.axes[1].lines}
    assert all(drawn[f"{score:g}"] == list(found[score]) for score in found)
