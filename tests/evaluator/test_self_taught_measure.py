"""The critic's error against the oracle, and the page that shows it."""

import itertools

import numpy as np
import pandas as pd
import pytest
from critics import made_cards, record_of_rounds, shown_page
from scipy.stats import ttest_1samp
from taught import Canned, rollouts

from projected_grpo.errors import UserError
from projected_grpo.evaluator.backends import Reply
from projected_grpo.evaluator.cards import CALIBRATION, FAILURE, Card
from projected_grpo.evaluator.critic import Critic
from projected_grpo.evaluator.oracle import BEFORE, WEAK, errors, oracle_scores
from projected_grpo.evaluator.prompts import FULL
from projected_grpo.evaluator.rounds import IN_CONTEXT, Outcome
from projected_grpo.evaluator.traces import from_rollouts, trace_id
from projected_grpo.pages.critic import ERRORS, critics_of, records_of
from projected_grpo.pages.stage import Numbers


def by_definition(rows, said):
    """(mae, false and missed credit, both against the weak score) and the denominators of the first three, by a loop
    over rollouts with a score.
    """
    off, hacks, solves, bad, good = [], [], [], [], []
    for r in rows:
        phi = said[trace_id(r.problem_id, r.mode, r.completion)]
        off.append(abs(phi - (10 if r.gt_pass else 2 if r.can_compile else 0)))
        if r.channel and not r.gt_pass:
            hacks.append(phi >= 5)
        if r.gt_pass:
            solves.append(phi < 5)
        if r.passed and not r.channel:
            good.append(phi < 5)
        else:
            bad.append(phi >= 5)
    means = np.array([np.mean(found) for found in (off, hacks, solves, bad, good)])
    return means, [len(off), len(hacks), len(solves)]


def test_errors_against_a_loop_written_from_their_definitions(tmp_path):
    path = rollouts(tmp_path / "r.parquet", 12)
    frame = pd.read_parquet(path)
    rng = np.random.default_rng(0)
    traces = from_rollouts(path)
    scores = {
        when: {trace.id: float(rng.integers(0, 11)) if rng.random() < 0.7 else None for trace in traces}
        for when in ((0, BEFORE), (1, "later"))
    }
    rows = [
        {"trace_id": t.id, "round": n, "condition": c, "phi": said[t.id], "weak_phi": t.last.phi_after}
        for (n, c), said in scores.items()
        for t in traces
    ]  # fmt: skip
    table = errors(pd.DataFrame(rows), oracle_scores(path)).set_index("condition")
    measures, counts = ["mae", "false_credit", "missed_credit"], ["answered", "exploited", "solved"]
    weak = ["weak_false_credit", "weak_missed_credit"]

    def having(*conditions):
        ids = [(r, trace_id(r.problem_id, r.mode, r.completion)) for r in frame.itertuples()]
        return [r for r, id in ids if all(scores[c][id] is not None for c in conditions)]

    for when, said in scores.items():
        expected, sizes = by_definition(having(when), said)
        row = table.loc[when[1]]
        assert row[measures + weak].astype(float).to_numpy() == pytest.approx(expected)
        assert [row[f"n_{kind}"] for kind in counts] == sizes
        given = [said[id] for id in {trace_id(r.problem_id, r.mode, r.completion) for r in having(when)}]
        assert row["same_score"] == pytest.approx(max(map(given.count, given)) / len(given))
        assert row["n"] == len(traces) and row["unusable"] == 1 - sizes[0] / len(traces)
    both = having(*scores)
    now, sizes = by_definition(both, scores[(1, "later")])
    then, _ = by_definition(both, scores[(0, BEFORE)])
    later = table.loc["later"]
    assert later[[f"delta_{name}" for name in measures]].astype(float).to_numpy() == pytest.approx(
        (now - then)[:3]
    )
    assert sizes[0] < min(table["n_answered"])  # other sets than each condition's own
    assert table.loc[BEFORE, "delta_mae":].isna().all()


def test_the_weak_score_is_the_oracles_but_for_flagged_solutions(tmp_path):
    path = rollouts(tmp_path / "r.parquet", 12)
    traces, frame = from_rollouts(path), pd.read_parquet(path)
    weak = {trace.id: trace.last.phi_after for trace in traces}
    truth = oracle_scores(path).set_index("trace_id")["true_phi"]
    ids = [trace_id(r.problem_id, r.mode, r.completion) for r in frame.itertuples()]
    flagged_solution = dict(zip(ids, frame["channel"] & frame["gt_pass"], strict=True))
    assert {id for id in ids if weak[id] != truth[id]} == {id for id in ids if flagged_solution[id]}
    rows = [
        {"trace_id": id, "round": 0, "condition": BEFORE, "phi": None, "weak_phi": phi}
        for id, phi in weak.items()
    ]
    row = errors(pd.DataFrame(rows), oracle_scores(path)).set_index("condition").loc[WEAK]
    n = sum(flagged_solution.values())
    assert n > 0 and row["mae"] == pytest.approx(8 * n / len(ids))  # 2 in place of 10
    assert row["missed_credit"] == pytest.approx(n / frame["gt_pass"].sum()) and row["false_credit"] == 0
    assert row["n_answered"] == len(ids)


def measured_rows(seed):
    """What `errors` says of one replication: before, the weak score, and one round of training."""
    counts = {f"n_{kind}": 7 for kind in ("answered", "exploited", "solved")}
    rates = {"unusable": 0.0, "same_score": 0.5, "false_credit": 0.9, "missed_credit": 0.1, **counts}
    rates |= {"weak_false_credit": 0.3, "weak_missed_credit": 0.2}
    before = {"round": 0, "condition": BEFORE, "mae": 5.0, **rates}
    weak = {"round": 0, "condition": WEAK, "mae": 0.2, **rates}
    after = {"round": 1, "condition": "trained on cards", **rates, "mae": 2.0, "n_exploited": 3}
    after |= {"delta_mae": -3 + seed / 100, "delta_false_credit": -0.4, "delta_missed_credit": None}
    return pd.DataFrame([before, weak, after])


def test_nothing_to_measure_is_one_line():
    truth = pd.DataFrame({"trace_id": ["a"], "true_phi": [10.0], "solved": [True], "exploited": [False]})
    for evaluations in (
        pd.DataFrame(),
        pd.DataFrame({"trace_id": ["b"], "phi": [1.0], "condition": [BEFORE]}),
    ):
        with pytest.raises(UserError, match="no evaluated trace has a verdict of hidden tests"):
            errors(evaluations, truth)


def page_of_seeds(seeds, cards=None, **done):
    run = {"round": 1, "asked": 4, "pairs": 3, "pool_error": 1.0, "asked_error": 2.0, **done}
    runs = [record_of_rounds(seed, [run]) for seed in seeds]
    records = [r for run in runs for r in records_of(measured_rows(run["seed"]), run)]
    return Numbers(records), shown_page(records, runs, made_cards() if cards is None else cards).text


def test_the_table_tests_paired_differences_over_seeds():
    numbers, page = page_of_seeds((41, 42, 43))
    after = "trained on cards, round 1"
    assert numbers.mean(after, "delta_mae") == pytest.approx(-3 + 0.42)  # and not 2 - 5
    (line,) = numbers.compared({after: after}, ["delta_mae"])
    assert line["p"] == pytest.approx(ttest_1samp([-2.59, -2.58, -2.57], 0).pvalue)
    assert line["p_holm"] == pytest.approx(line["p"])  # the only difference that is tested
    assert numbers.mean(after, "delta_false_credit") == pytest.approx(-0.4)
    assert numbers.mean(after, "delta_missed_credit") is None and numbers.mean(WEAK, "delta_mae") is None
    assert numbers.mean(after, "same_score") == 0.5 and numbers.mean(after, "n_exploited") == 3
    assert f"| {after} | mean error of phi | -2.580 [" in page


@pytest.mark.parametrize(("without", "is_critic"), [(0.5, True), (0.75, False)])
def test_a_backend_whose_answers_are_mostly_unusable_is_no_critic(tmp_path, without, is_critic):
    path = rollouts(tmp_path / "r.parquet", 2)
    traces, truth = from_rollouts(path), oracle_scores(path)
    sound, asked = Reply(FULL.evaluation(10, "so it is")), itertools.count()

    def say(prompt):
        """Answer a question with cards before it, and of those without only some."""
        told = "<lesson>" in prompt or next(asked) >= without * len(traces)
        return sound if told else Reply("I cannot say.")

    critic = Critic(Canned(say), FULL, 1, 0)
    outcome = Outcome()
    outcome.record(traces, 0, BEFORE, critic.evaluate(traces))
    pair = tuple(
        Card.of(traces[0], 0, kind=kind, phi_after=phi, reasoning="r", created_by="x", mistake_type=mistake)
        for kind, phi, mistake in ((CALIBRATION, 10.0, ""), (FAILURE, 1.0, "inflated score"))
    )
    others = [trace for trace in traces if trace.id != traces[0].id]  # a trace is not shown its own cards
    outcome.record(others, 1, IN_CONTEXT, critic.evaluate(others, [pair]))
    run = record_of_rounds(41, [{"round": 1}])
    records = records_of(errors(pd.DataFrame(outcome.evaluations), truth), run)
    numbers, none = critics_of(records)
    after = f"{IN_CONTEXT}, round 1"
    assert numbers.mean(BEFORE, "unusable") == without and numbers.mean(after, "unusable") == 0
    assert none == ([] if is_critic else [BEFORE])
    assert (numbers.mean(BEFORE, "same_score") == 1.0) is is_critic
    assert (numbers.mean(after, "delta_mae") is not None) is is_critic  # nothing is compared with no critic
    assert numbers.mean(after, "same_score") == 1.0
    page = shown_page(records, [run], made_cards()).text
    assert (f"| {BEFORE}: no critic |" in page) is not is_critic and f"| {after} |" in page


@pytest.mark.parametrize(
    ("unusable", "shown"),
    [
        ((0.6, None, None), []),  # no round made a pair, so no critic came of it
        ((0.6, 0.1, 0.1), [2, 3]),
        ((0.1, 0.6, 0.1), [3]),  # a row of no critic has no error either
        ((0.1, None, None), [1, 2, 3]),
    ],
)
def test_a_round_has_errors_where_a_critic_came_into_it(unusable, shown):
    before, *after = unusable
    records = [(BEFORE, "unusable", 41, before)]
    for number, share in enumerate((*after, None), 1):
        row = f"trained on cards, round {number}"
        records += [(row, "unusable", 41, share), (row, "pool_error", 41, 1.0), (row, "asked_error", 41, 2.0)]
    numbers, _ = critics_of(records)
    for error in ERRORS:
        assert [n for n in (1, 2, 3) if numbers.of(f"trained on cards, round {n}", error)] == shown


def test_the_page_escapes_what_models_wrote_and_says_what_it_stands_on():
    said = {"reasoning": "<script>x</script>", "action": "<b>code</b> | x"}
    done = {"skipped": {"no_json": 1}, "unanswered": {"pool": {"refusal": 2}}}
    _, page = page_of_seeds((41, 42, 43), made_cards(**said), **done)
    assert "<script>" not in page and "<b>" not in page and "&lt;script&gt;" in page
    assert "3 no_json" in page and "6 unanswered: refusal" in page
    assert WEAK.capitalize() in page and "One replication" not in page
    assert "One replication" in page_of_seeds((41,))[1]
