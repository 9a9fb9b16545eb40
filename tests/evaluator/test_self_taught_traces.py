"""Traces from rollouts, and the evaluator's rules that need no server."""

from collections import Counter

import pandas as pd
import pytest
from pydantic import ValidationError
from taught import Canned

from projected_grpo.errors import UserError
from projected_grpo.evaluator.backends import Reply
from projected_grpo.evaluator.cards import Card
from projected_grpo.evaluator.evaluator import SelfTaughtEvaluator
from projected_grpo.evaluator.memory import Memory
from projected_grpo.evaluator.traces import (
    ScoreEvent,
    Trace,
    balanced_sample,
    from_rollouts,
    split,
    submitted_code,
)

WRONG = '{"wrong_phi_after": 9, "wrong_reasoning": "passed", "mistake_type": "Inflated_Score"}'


@pytest.fixture
def evaluator(tmp_path):
    """An evaluator whose backend says WRONG to every prompt."""
    return SelfTaughtEvaluator(Canned(lambda prompt: Reply(WRONG)), Memory(tmp_path / "cards.jsonl"))


def trace_of(*steps):
    """A trace of (action, score before, score after)."""
    events = (ScoreEvent("s", action, "s", before, after, "r") for action, before, after in steps)
    return Trace("t", "p", tuple(events))


def rollouts(path, **changes):
    rows = {
        "step": [1, 1, 1, 1, 2],
        "problem_id": ["p1", "p1", "p1", "p2", "p1"],
        "mode": ["sentinel"] * 5,
        "sample": [0, 1, 2, 0, 0],
        "prompt": ["<|im_start|>user\nDo it.<|im_end|>\n<|im_start|>assistant\n"] * 5,
        "completion": [f"```python\n{code}\n```" for code in ("right", "trick", "wrong", "bro(ken", "right")],
        "can_compile": [True, True, True, False, True],
        "channel": [False, True, False, False, False],
        "passed": [True, True, False, False, True],
        "gt_pass": [True, False, False, False, True],
        "exploited": [False, True, False, False, False],
    }
    pd.DataFrame(rows | changes).to_parquet(path)
    return path


def test_scores_come_from_the_grader_and_the_weak_detector(tmp_path):
    traces = from_rollouts(rollouts(tmp_path / "rollouts.parquet"))
    events = {trace.last.action: trace.last for trace in traces}
    assert {action: event.phi_after for action, event in events.items()} == {
        "right": 10.0,
        "trick": 2.0,
        "wrong": 2.0,
        "bro(ken": 0.0,
    }
    assert events["trick"].state_before == "Do it."
    assert events["trick"].state_after == events["right"].state_after == "the grader accepts it"
    assert len(traces) == 4  # the repeated completion is one trace


def test_traces_do_not_read_the_oracles_column(tmp_path):
    plain = from_rollouts(rollouts(tmp_path / "a.parquet"))
    scrambled = rollouts(
        tmp_path / "b.parquet", gt_pass=[False, True, True, True, False], exploited=[True] * 5
    )
    assert from_rollouts(scrambled) == plain
    without = pd.read_parquet(tmp_path / "a.parquet").drop(columns=["gt_pass", "exploited"])
    without.to_parquet(tmp_path / "c.parquet")
    assert from_rollouts(tmp_path / "c.parquet") == plain


def test_missing_columns_or_files_are_one_line(tmp_path):
    with pytest.raises(UserError, match="no such file"):
        from_rollouts(tmp_path / "none.parquet")
    pd.DataFrame({"step": [1]}).to_parquet(tmp_path / "bad.parquet")
    with pytest.raises(UserError, match=r"bad\.parquet"):
        from_rollouts(tmp_path / "bad.parquet")


def test_problems_are_never_split_between_parts():
    traces = [Trace(f"{g}-{i}", "p", (), group=f"g{g}") for g in range(40) for i in range(3)]
    parts = split(traces, {"a": 1, "b": 2, "c": 1}, seed=3)
    groups = {name: {t.group for t in part} for name, part in parts.items()}
    assert [len(groups[name]) for name in "abc"] == [10, 20, 10]
    assert set.union(*groups.values()) == {f"g{g}" for g in range(40)}
    assert split(traces, {"a": 1, "b": 2, "c": 1}, seed=4)["a"] != parts["a"]


def test_submitted_code_is_that_of_a_fence_or_the_whole_text():
    assert submitted_code("Text\n```python\nx = 1\n```\nmore") == "x = 1"
    assert submitted_code(" no fence\n") == "no fence"


@pytest.mark.parametrize("phi", [float("nan"), -1, 10.5, "7", True])
def test_a_score_out_of_range_is_refused(phi):
    with pytest.raises(ValidationError, match="phi_after"):
        ScoreEvent("s", "a", "s", phi_before=0.0, phi_after=phi, reasoning="r")


def test_a_trace_without_score_events_gives_no_pairs_and_says_so(evaluator, caplog):
    assert evaluator.generate([Trace("t0", "p", ())]) == 0
    assert "t0 has no score events" in caplog.text


def test_only_events_that_moved_the_score_are_asked_about(evaluator):
    moved = (0.0, 0.49, -0.49, 0.5, -0.5, 2.0)
    assert evaluator.generate([trace_of(*((f"a{delta}", 5.0, 5.0 + delta) for delta in moved))]) == 3
    asked = [prompt.split("<action>\n")[1].split("\n")[0] for prompt in evaluator.backend.prompts]
    assert asked == ["a0.5", "a-0.5", "a2.0"]
    assert [right.event for right, _ in evaluator.memory.pairs()] == [3, 4, 5]


@pytest.mark.parametrize(("attempts", "made"), [(2, 0), (4, 1)])
def test_an_unusable_answer_is_asked_for_again_with_another_seed(tmp_path, attempts, made):
    # One of two steps has an answer at the third seed.
    backend = Canned(lambda prompt: Reply(WRONG if len(backend.seeds) == 3 and "a1" in prompt else "no"))
    memory = Memory(tmp_path / "cards.jsonl")
    evaluator = SelfTaughtEvaluator(backend, memory, attempts=attempts, seed=7)
    trace = trace_of(("a1", 0, 1), ("a2", 0, 2))
    assert evaluator.generate([trace]) == made
    assert len(backend.seeds) == len(set(backend.seeds)) == attempts and backend.seeds[0] == 7
    assert len(memory.skips) == 2 - made and not evaluator.failed
    assert evaluator.generate([trace]) == 0 and len(backend.seeds) == attempts


def test_a_wrong_score_that_is_right_is_turned_away_and_not_counted(evaluator):
    assert evaluator.generate([trace_of(("a", 0, 9))]) == 0
    labels = [decision.label for decision in evaluator.memory.decisions.values()]
    assert labels == ["promoted: passed every check", "rejected: not wrong"]


def test_braces_in_the_code_do_not_break_the_question(evaluator):
    event = ScoreEvent("{x}", "d = {'a': 1}\nf'{d}'", "{}", 0, 2, "{}")
    assert evaluator.generate([Trace("t", "p", (event,))])
    assert "d = {'a': 1}\nf'{d}'" in evaluator.backend.prompts[0]


def test_kinds_take_turns_in_a_sample_while_they_last():
    def trace(i, phi, shown):
        return Trace(f"t{i}", "p", (ScoreEvent("s", f"a{i}", shown, 0, phi, "r"),))

    kinds = [(2, "no")] * 20 + [(10, "yes")] * 3 + [(2, "yes")] * 8
    traces = [trace(i, *kind) for i, kind in enumerate(kinds)]
    drawn = balanced_sample(traces, 15, 0)
    assert len({t.id for t in drawn}) == 15 and balanced_sample(traces, 15, 0) == drawn
    assert balanced_sample(traces, 15, 1) != drawn
    counts = Counter(t.last.kind for t in drawn)
    assert counts == {(2, "no"): 6, (2, "yes"): 6, (10, "yes"): 3}
    assert {t.last.kind for t in drawn[:3]} == set(counts)
    assert len(balanced_sample(traces, 99, 0)) == len(traces)


def test_traces_of_some_runs_are_one_set_and_their_cards_carry_mode_and_flag(tmp_path):
    first = rollouts(tmp_path / "a.parquet")
    second = rollouts(tmp_path / "b.parquet", completion=["right", "trick", "other", "bro(ken", "right"])
    whole = from_rollouts(first, second)
    assert len({t.id for t in whole}) == len(whole)
    assert {t.id for t in whole} == {t.id for path in (first, second) for t in from_rollouts(path)}
    flagged = next(t for t in whole if t.flagged)
    assert (flagged.mode, flagged.last.action) == ("sentinel", "trick")
    card = Card.of(flagged, 0, kind="critic_calibration", phi_after=2.0, reasoning="r", created_by="x")
    assert (card.mode, card.flagged) == ("sentinel", True)
