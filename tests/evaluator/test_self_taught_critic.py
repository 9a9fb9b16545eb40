"""The critics: answers and wordings, a local checkpoint, its training, and what became of each evaluation."""

from collections import Counter

import numpy as np
import pytest
import torch
from taught import Canned, make_base, rollouts
from test_self_taught_memory import card
from transformers import AutoModelForCausalLM

from projected_grpo.cells.self_taught import CriticTraining
from projected_grpo.errors import UserError
from projected_grpo.evaluator.answers import MISTAKES, Evaluation, Unusable, WrongEvaluation
from projected_grpo.evaluator.backends import Reply
from projected_grpo.evaluator.critic import Critic, problems
from projected_grpo.evaluator.critic_lora import train_lora
from projected_grpo.evaluator.examples import believed, demonstrations, lessons, nearest
from projected_grpo.evaluator.local import LocalBackend, padded
from projected_grpo.evaluator.prompts import COMPACT, FULL
from projected_grpo.evaluator.traces import ScoreEvent, Trace, from_rollouts
from projected_grpo.model.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return make_base(tmp_path_factory.mktemp("base"))


def test_greedy_generation_equals_a_loop_of_plain_forwards(base):
    backend = LocalBackend(base, name="x", max_tokens=12, batch=3)
    prompts = ["one", "a much longer prompt than the first", "a + 3", "last"]
    replies = list(backend.answer(prompts, {}, 0.0, 0))
    model, tokenizer = AutoModelForCausalLM.from_pretrained(base).eval(), Tokenizer(base)
    for prompt, reply in zip(prompts, replies, strict=True):
        ids, new = tokenizer.encode_chat(prompt), []
        for _ in range(12):
            with torch.no_grad():
                token = int(model(input_ids=torch.tensor([ids + new])).logits[0, -1].argmax())
            if token == tokenizer.end:
                break
            new.append(token)
        assert reply.text == tokenizer.decode(new)
        assert reply.problem == ("truncated" if len(new) == 12 else "")
    assert backend.usage.calls == 4
    assert backend.usage.tokens_in == sum(len(tokenizer.encode_chat(p)) for p in prompts)


def test_sampling_follows_the_seed_and_leaves_the_global_stream_alone(base):
    backend = LocalBackend(base, name="x", max_tokens=8)
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = [r.text for r in backend.answer(["a", "b"], {}, 1.0, 5)]
    assert torch.equal(torch.get_rng_state(), state)
    assert [r.text for r in backend.answer(["a", "b"], {}, 1.0, 5)] == first
    assert [r.text for r in backend.answer(["a", "b"], {}, 1.0, 6)] != first


def test_no_checkpoint_is_one_line(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UserError):
        LocalBackend(str(tmp_path), name="x")
    with pytest.raises(UserError):
        LocalBackend(str(tmp_path / "none"), name="x")


def test_padding_is_on_the_left():
    ids, mask = padded([[1, 2, 3], [4]], 0)
    assert ids.tolist() == [[1, 2, 3], [0, 0, 4]] and mask.tolist() == [[1, 1, 1], [0, 0, 1]]


def test_training_teaches_the_critic_its_examples_and_goes_on_from_a_folder(base, tmp_path):
    examples = [("good one", "10: fine"), ("bad one", "2: a trick")]
    recipe = CriticTraining(
        rank=8, alpha=16, lr=0.02, batch=2, steps=75, calibration_lr=0.02, calibration_steps=75
    )
    first = train_lora(base, None, examples, recipe, 0, tmp_path / "a")
    second = train_lora(base, str(tmp_path / "a"), examples, recipe, 0, tmp_path / "b")
    assert second < first < 5
    assert second < 0.3
    loaded = LocalBackend(base, str(tmp_path / "b"), name="x", max_tokens=40)
    assert [r.text for r in loaded.answer(["good one", "bad one"], {}, 0.0, 0)] == [
        text for _, text in examples
    ]


def test_the_uncalibrated_critic_is_taught_to_believe_the_grader(tmp_path):
    traces = from_rollouts(rollouts(tmp_path / "r.parquet", 12))
    examples = demonstrations(traces, COMPACT, 0)
    assert len(examples) == 2 * len(traces)
    for trace, (prompt, said) in zip(traces, examples[::2], strict=True):
        event = trace.last
        phi = COMPACT.read(Reply(said), Evaluation).phi_after
        assert phi == believed(event)[0]
        assert (phi == 10) == ("accepts" in event.state_after)
        assert "tricks" not in prompt + said  # the weak detector's words
    flags = [trace.last.phi_after for trace in traces]
    given = [float(prompt.split("\n")[-2].split(":")[0]) for prompt, _ in examples[1::2]]
    assert abs(np.corrcoef(flags, given)[0, 1]) < 0.3  # drawn, not taken from the detector
    for correct, (_, said) in zip(given, examples[1::2], strict=True):
        wrong = COMPACT.read(Reply(said), WrongEvaluation)
        assert abs(wrong.wrong_phi_after - correct) > 0.5
        assert wrong.mistake_type in MISTAKES


@pytest.mark.parametrize("wording", [COMPACT, FULL])
def test_answers_are_read_as_they_are_written(wording):
    for phi in (0.0, 2.5, 10.0):
        said = wording.read(Reply(wording.evaluation(phi, "a: b")), Evaluation)
        assert said == Evaluation(phi_after=phi, reasoning="a: b")
    wrong = wording.read(Reply(wording.wrong_evaluation(9.0, MISTAKES[1])), WrongEvaluation)
    said = {"wrong_reasoning": MISTAKES[1], "mistake_type": MISTAKES[1]}
    assert wrong == WrongEvaluation(wrong_phi_after=9.0, **said)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("nine: x", "no_line"),
        ("9", "no_line"),
        ("9: x\ny", "no_line"),
        ("9: laziness", "unknown_value"),
    ],
)
def test_a_line_that_is_no_answer_is_unusable(text, reason):
    with pytest.raises(Unusable, match=reason):
        COMPACT.read(Reply(text), WrongEvaluation)


def test_nothing_to_train_on_is_one_line(tmp_path):
    with pytest.raises(UserError, match=r"no example to train the critic on; pool\.problems is too small"):
        train_lora("unread", None, [], None, 0, tmp_path / "a")


def test_nearest_prefers_shared_words_and_leaves_the_trace_itself_out(tmp_path):
    pairs = [
        (card(action=f"return {w}", trace_id=w), card("failure_pattern", action=f"return {w}", trace_id=w))
        for w in ("alpha beta", "beta gamma", "delta")
    ]
    event = ScoreEvent("s", "return alpha beta", "accepted", 0, 2, "r")
    assert [right.trace_id for right, _ in nearest(event, pairs, 2)] == ["beta gamma", "alpha beta"]
    assert [right.trace_id for right, _ in nearest(event, pairs, 1, without="alpha beta")] == ["beta gamma"]
    assert nearest(event, [], 2) == [] and nearest(event, pairs, 0) == []


def test_cards_in_context_read_as_examples_in_full_and_keep_the_small_critics_bytes():
    event = ScoreEvent("a problem\n```\nstarter", "return 0", "the grader accepts it", 0, 2, "r")
    pair = (card(), card("failure_pattern"))
    lesson = """
<lesson>
<action>
return max(xs)
</action>
<state_after>
accepted
</state_after>
When evaluating state transitions:
CORRECT scoring example: from 0 to 2
Score like this: nothing is shown
WRONG scoring example (inflated score): from 0 to 9
AVOID this mistake: it passed
</lesson>
"""
    plain, shown = FULL.ask_score("p", event), FULL.ask_score("p", event, [pair])
    assert shown == plain.replace("PURPOSE: p\n", "PURPOSE: p\n" + lesson)
    small = "return max(xs)\naccepted\n2: nothing is shown\n9: inflated score\n\n"
    assert COMPACT.ask_score("p", event, [pair]) == small + COMPACT.ask_score("p", event)
    assert COMPACT.ask_score("p", event) == "a problem\nreturn 0\nthe grader accepts it\nSCORE"


LOST, SCORE = Reply("", "timeout", again=True), Reply(FULL.evaluation(2, "a trick"))
TRACES = [Trace(f"t{i}", "p", (ScoreEvent("s", f"a{i}", "o", 0, 2, "r"),)) for i in range(5)]


def scripted(*replies):
    script = iter(replies)
    return Canned(lambda prompt: next(script))


def test_an_evaluation_that_failed_on_the_way_is_asked_for_again_and_the_rest_keep_their_reason(caplog):
    caplog.set_level("INFO")
    first = [SCORE, LOST, Reply("", "refusal"), Reply("nine"), Reply(FULL.evaluation(11, "x"))]
    backend = scripted(*first, SCORE)
    said = Critic(backend, FULL, 0, 0).evaluate(TRACES)
    assert len(backend.seeds) == 2 and backend.prompts[5:] == [backend.prompts[1]]
    assert [e.phi for e in said] == [2.0, 2.0, None, None, None]
    assert [e.problem for e in said] == ["", "", "refusal", "no_json", "out_of_range"]
    assert problems(said) == {"refusal": 1, "no_json": 1, "out_of_range": 1}
    assert "5 evaluations, unusable: no_json: 1, out_of_range: 1, refusal: 1" in caplog.text


def test_an_outage_is_not_the_critics_failure():
    backend = scripted(SCORE, LOST, SCORE, LOST, SCORE, SCORE, Reply("", "server_error", again=True))
    with pytest.raises(UserError, match=r"1 of 5 evaluations failed twice \(server_error: 1\); finished"):
        Critic(backend, FULL, 0, 0).evaluate(TRACES)


def test_calibration_shows_every_kind_equally_often():
    kinds = [(2, "no"), (2, "no"), (10, "yes"), (2, "yes"), (2, "no"), (2, "no"), (10, "yes")]
    steps = [ScoreEvent("s", f"a{i}", shown, 0, phi, "r") for i, (phi, shown) in enumerate(kinds)]
    shown = Counter(prompt for prompt, _ in lessons(steps, "p", COMPACT))
    times = {i: shown[COMPACT.ask_score("p", step)] for i, step in enumerate(steps)}
    assert times == {0: 1, 1: 1, 2: 2, 3: 4, 4: 1, 5: 1, 6: 2}
    assert lessons([], "p", COMPACT) == []
