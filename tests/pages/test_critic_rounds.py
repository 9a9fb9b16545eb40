"""The marks of the self-taught critic, on made-up rounds, as its page says them."""

import pandas as pd
import pytest
from critics import made_cards, record_of_rounds, shown_page
from figures import spilled
from scipy.stats import ttest_1samp

from projected_grpo.pages.critic import records_of, rounds_of
from projected_grpo.pages.stage import Numbers

CREDITS = ("weak_false_credit", "weak_missed_credit")


def errors_of(rounds):
    """What `oracle.errors` says: (false credit, missed credit, share of the commonest score) by round, 0 is before."""
    rows = []
    for number, (false, missed, same) in enumerate(rounds):
        row = {"round": number, "condition": "trained on cards" if number else "before", "same_score": same}
        rows += [row | dict(zip(CREDITS, (false, missed), strict=True))]
        if number:
            rows += [row | dict.fromkeys((*CREDITS, "same_score"), 1.0) | {"condition": "cards in context"}]
    return pd.DataFrame(rows)


def shown(measured, hardness):
    """Return numbers and page of made-up rounds; hardness: seed -> (of accepted pairs, of their pool) by round."""
    runs = []
    for seed, rounds in hardness.items():
        done = [{"round": n, "hardness": a, "pool_hardness": b} for n, (a, b) in enumerate(rounds, 1)]
        runs.append(record_of_rounds(seed, done))
    records = [r for run in runs for r in records_of(measured[run["seed"]], run)]
    return Numbers(records), shown_page(records, runs, made_cards())


GOOD = {
    1: errors_of([(0.3, 0.0, 0.5), (0.2, 0.4, 0.6), (0.1, 0.1, 0.5)]),
    2: errors_of([(0.3, 0.0, 0.5), (0.2, 0.2, 0.7), (0.0, 0.1, 0.5)]),
}
HARDER = {1: [(1.0, 1.0), (3.0, 1.0)], 2: [(2.0, 1.0), (3.0, 1.5)]}


def lines_of(page):
    lines = [line.split(" | ") for line in page.text.split("\n") if line.startswith("| ")]
    return {line[0].removeprefix("| "): line for line in lines}


def test_falling_credits_spread_scores_and_harder_pairs_meet_all_marks():
    numbers, page = shown(GOOD, HARDER)
    first, last = rounds_of(numbers)
    assert (first, last) == ("trained on cards, round 1", "trained on cards, round 2")
    assert numbers.mean(first, CREDITS[0]) == pytest.approx(0.2)
    assert numbers.of(first, "hardness") == {1: 0.0, 2: 1.0}
    assert numbers.of(last, "hardness") == {1: 2.0, 2: 1.5}
    marks = {name: line for name, line in lines_of(page).items() if "the rounds" in name or "70%" in name}
    assert len(marks) == 5 and all(line[4] == "yes" for line in marks.values())
    # Both seeds fall, but two seeds that differ tell nothing of the mean.
    assert "is not shown: 0 of 3 changes can be told from none.** The marks ask for the signs" in page.text
    drawn = [axes for axes in page.figures["rounds"].axes if axes.get_visible()]
    assert len(drawn) == 3 and not spilled(page.figures["rounds"])


def test_changes_that_can_be_told_are_said_so():
    seeds = range(8)
    measured = {
        s: errors_of([(0.3, 0.0, 0.5), (0.2, 0.4, 0.6), (0.1 + s / 1000, 0.1 + s / 100, 0.5)]) for s in seeds
    }
    numbers, page = shown(measured, {s: [(1.0, 1.0), (2.0 + s / 10, 1.0)] for s in seeds})
    first, last = rounds_of(numbers)
    (change,) = numbers.compared({"": {last: 1, first: -1}}, [CREDITS[1]])
    own = [0.1 + s / 100 - 0.4 for s in seeds]
    assert change["p"] == pytest.approx(ttest_1samp(own, 0).pvalue) and change["verdict"] != "not shown"
    assert "the critic is not degenerate; each change can be told from none" in page.text


@pytest.mark.parametrize(
    ("rounds", "hardness", "wrong"),
    [
        ([(0.3, 0.0, 0.5), (0.2, 0.4, 0.6), (0.2, 0.1, 0.5)], HARDER[1], "false credit"),
        ([(0.3, 0.0, 0.5), (0.2, 0.4, 0.6), (0.1, 0.6, 0.5)], HARDER[1], "missed credit"),
        ([(0.3, 0.0, 0.9), (0.2, 0.4, 0.8), (0.1, 0.1, 0.5)], HARDER[1], "at most 70%"),
        ([(0.3, 0.0, 0.5), (0.2, 0.4, 0.6), (0.1, 0.1, 0.5)], [(3.0, 1.0), (1.0, 1.0)], "accepted pairs"),
    ],
)
def test_each_mark_can_fail_alone(rounds, hardness, wrong):
    _, page = shown({1: errors_of(rounds)}, {1: hardness})
    failed = [name for name, line in lines_of(page).items() if len(line) > 4 and line[4] == "NO"]
    assert len(failed) == 1 and failed[0].startswith(wrong)
    assert "the critic is not free of degeneracy" in page.text


def test_what_cannot_be_told_is_said_so():
    numbers, page = shown({1: errors_of([(0.3, 0.0, 0.5), (0.2, 0.4, 0.6)])}, {1: [(None, None)]})
    assert rounds_of(numbers) == ["trained on cards, round 1"]
    assert "Not all marks set beforehand can be told" in page.text
