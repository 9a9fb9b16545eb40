"""The OpenAI-compatible backend and the evaluator against a real local HTTP server."""

import logging
import socket
import time
from collections import Counter

import pytest
from fake_openai_server import BODIES, running

from projected_grpo.cells.self_taught import Server
from projected_grpo.errors import UserError
from projected_grpo.evaluator.answers import WrongEvaluation
from projected_grpo.evaluator.backends import endpoint
from projected_grpo.evaluator.evaluator import SelfTaughtEvaluator
from projected_grpo.evaluator.memory import Memory
from projected_grpo.evaluator.server import ServerBackend
from projected_grpo.evaluator.traces import ScoreEvent, Trace

KEY = "sk-very-secret-0123456789"
SCHEMA = WrongEvaluation.model_json_schema()


@pytest.fixture
def connect(monkeypatch):
    """A backend for a server; the key and URL come from the environment, as they do for users."""

    def make(server, max_tokens=512, **options):
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_MODEL", "judge-1")
        how = Server(**{"retries": 1, "timeout": 10.0, **options})
        return ServerBackend(how=how, max_tokens=max_tokens)

    return make


@pytest.fixture
def memory(tmp_path):
    return Memory(tmp_path / "cards.jsonl")


def skipped(evaluator):
    """Unusable answers by reason: those in the memory, and those that a later run asks for again."""
    return Counter(evaluator.memory.skips.values()) + evaluator.failed


def trace(number, mark="good"):
    event = ScoreEvent("a problem", f"answer {number} [{mark}]", "accepted", 0.0, 2.0, "a trick")
    return Trace(f"t{number}", "solve it", (event,))


@pytest.mark.parametrize(
    ("mark", "reason"),
    [
        ("malformed", "no_json"),
        ("prose", "no_json"),
        ("empty", "empty"),
        ("missing", "missing_key"),
        ("type", "wrong_type"),
        ("nan", "not_finite"),
        ("infinite", "not_finite"),
        ("unknown", "unknown_value"),
        ("surrogate", "bad_text"),
        ("refusal", "refusal"),
        ("truncated", "truncated"),
        ("400", "bad_request"),
        ("500", "server_error"),
        ("html", "bad_response"),
        ("cut", "connection"),
        ("slow", "timeout"),
        ("drip", "timeout"),
        *((mark, "bad_response") for mark in BODIES),
    ],
)
def test_an_unusable_answer_is_skipped_counted_and_logged(memory, connect, caplog, mark, reason):
    caplog.set_level(logging.INFO)
    with running(slow=1.5) as server:
        backend = connect(server, retries=0, timeout=0.5 if mark in ("slow", "drip") else 10.0)
        evaluator = SelfTaughtEvaluator(backend, memory)
        assert evaluator.generate([trace(1), trace(2, mark), trace(3)]) == 2
    assert skipped(evaluator) == {reason: 1}
    [told] = [record.message for record in caplog.records if reason in record.message][-1:]
    assert "\n" not in told and "Traceback" not in caplog.text


@pytest.mark.parametrize("mark", ["good", "text", "once", "429", "slowonce", "gatewayonce"])
def test_a_good_answer_makes_a_pair_of_cards(memory, connect, mark):
    with running(slow=1.5) as server:
        backend = connect(server, timeout=0.5 if mark == "slowonce" else 10.0)
        assert SelfTaughtEvaluator(backend, memory).generate([trace(1, mark)]) == 1
        assert len(server.requests) == (1 if mark in ("good", "text") else 2)
    [(right, wrong)] = memory.pairs()
    assert (right.kind, right.phi_after, right.reasoning) == ("critic_calibration", 2.0, "a trick")
    assert (wrong.kind, wrong.phi_after) == ("failure_pattern", 9.0)
    assert {right.trace_id, wrong.trace_id} == {"t1"}
    assert right.created_by == "self_taught/server:judge-1"


def test_the_schema_is_sent(connect):
    with running() as server:
        replies = list(connect(server).answer(["x"], SCHEMA, 1.0, 7))
        assert replies[0].problem == ""
    [request] = server.requests
    assert request["response_format"]["json_schema"]["schema"] == SCHEMA
    assert (request["model"], request["seed"]) == ("judge-1", 7)


@pytest.mark.parametrize("code", [400, 422])
@pytest.mark.parametrize(
    "refuses",
    [
        ("response_format",),
        ("max_tokens",),
        ("response_format", "max_tokens"),
        ("temperature",),
        ("seed",),
        ("temperature", "seed", "max_tokens", "response_format"),
    ],
    ids="+".join,
)
def test_a_form_that_the_server_refuses_is_left_off_from_then_on(memory, connect, refuses, code):
    with running(refuses=refuses, refusal=code) as server:
        evaluator = SelfTaughtEvaluator(connect(server, concurrency=1, max_tokens=77), memory)
        assert evaluator.generate([trace(i) for i in range(5)]) == 5
    assert server.refused == len(refuses)  # asked once in each other form, then remembered
    assert len(server.requests) == 5 + len(refuses)
    last = server.requests[-1]
    assert last["max_completion_tokens" if "max_tokens" in refuses else "max_tokens"] == 77
    for key in ("response_format", "temperature", "seed"):
        assert (key in last) == (key not in refuses)


@pytest.mark.parametrize("refuses", ["response_format", "max_tokens", "temperature"])
def test_requests_under_way_when_the_form_is_found_refused_are_not_lost(memory, connect, refuses):
    with running(refuses=(refuses,), lag=0.5) as server:
        evaluator = SelfTaughtEvaluator(connect(server, concurrency=8), memory)
        assert evaluator.generate([trace(i) for i in range(16)]) == 16
        assert server.refused > 1  # several were under way
    assert not skipped(evaluator)


def test_a_400_about_the_prompt_alone_changes_no_form(memory, connect):
    with running() as server:
        evaluator = SelfTaughtEvaluator(connect(server, concurrency=1), memory)
        assert evaluator.generate([trace(1, "400"), trace(2)]) == 1
    assert "response_format" in server.requests[-1]
    assert skipped(evaluator) == {"bad_request": 1}


def test_a_thousand_answers_with_30_percent_bad_lose_no_good_one_and_resume(memory, connect):
    bad = ["malformed", "missing", "type", "nan", "refusal", "truncated", "prose", "empty", "html", "500"]
    marks = [bad[i // 10 % 10] if i % 10 in (2, 5, 9) else "good" for i in range(1000)]
    traces = [trace(i, mark) for i, mark in enumerate(marks)]
    good = marks.count("good")
    assert good == 700
    with running() as server:
        backend = connect(server, concurrency=16, retries=0, patience=1000)
        first = SelfTaughtEvaluator(backend, memory)
        ask = backend.answer
        # Cut the batch off in the middle, as a crash would.
        backend.answer = lambda *asked: (r for i, r in enumerate(ask(*asked)) if i < 400 or _crash())
        with pytest.raises(KeyboardInterrupt):
            first.generate(traces)
        backend.answer = ask
        made = len(memory.pairs())
        asked_before = len(server.requests)
        second = SelfTaughtEvaluator(backend, Memory(memory.path), seed=1)
        assert made + second.generate(traces) == good
        assert asked_before < 500
        settled = 400 - first.failed.total()
        assert sum(request["seed"] for request in server.requests) == 1000 - settled  # the second's alone
        assert server.most_at_once <= 16
        assert backend.usage.calls == backend.usage.tokens_out // 7
    assert len(Memory(memory.path).pairs()) == good
    found = skipped(second)
    assert sum(found.values()) == 300
    # The second tries again what failed in the first.
    for run, seen in ((first, marks[:400]), (second, marks)):
        assert run.failed == {"server_error": seen.count("500"), "bad_response": seen.count("html")}
    assert found["no_json"] == marks.count("malformed") + marks.count("prose")


def _crash():
    raise KeyboardInterrupt


def test_an_unreachable_server_fails_in_one_line_and_keeps_finished_pairs(memory, connect):
    with running() as server:
        evaluator = SelfTaughtEvaluator(connect(server), memory)
        assert evaluator.generate([trace(1), trace(2)]) == 2
    start = time.monotonic()
    with pytest.raises(UserError) as error:
        evaluator.generate([trace(i) for i in range(200)])
    assert time.monotonic() - start < 10
    assert "\n" not in str(error.value) and "cannot be reached" in str(error.value)
    assert KEY not in str(error.value)
    assert len(Memory(memory.path).pairs()) == 2


def test_a_server_that_drops_packets_is_unreachable_and_not_slow(memory, monkeypatch):
    """A full listen queue drops connection requests, as a firewall does."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        port = deaf.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for other in waiting:
            other.setblocking(False)
            other.connect_ex(("127.0.0.1", port))
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{port}/v1")
        monkeypatch.setattr("projected_grpo.evaluator.server.CONNECT", 0.3)
        evaluator = SelfTaughtEvaluator(ServerBackend("judge-1", Server(timeout=60.0, retries=1)), memory)
        start = time.monotonic()
        with pytest.raises(UserError, match=r"cannot be reached .* after 2 tries") as error:
            evaluator.generate([trace(i) for i in range(100)])
        assert time.monotonic() - start < 10
        assert "\n" not in str(error.value)
        for other in waiting:
            other.close()


def test_a_server_that_fails_every_request_is_given_up(memory, connect):
    with running() as server:
        evaluator = SelfTaughtEvaluator(connect(server, retries=0, patience=10), memory)
        good = [trace(i) for i in range(5)]
        with pytest.raises(UserError, match=r"\d+ requests in a row failed"):
            evaluator.generate(good + [trace(i, "500") for i in range(5, 500)])
        assert len(server.requests) < 100
    assert len(memory.pairs()) == 5


def test_the_key_reaches_no_log_card_or_message(memory, connect, caplog):
    caplog.set_level(logging.DEBUG)
    with running() as server:
        evaluator = SelfTaughtEvaluator(connect(server), memory)
        evaluator.generate([trace(1, "echo"), trace(2, "500")])
        with pytest.raises(UserError) as error:
            evaluator.generate([trace(3, "401")])
        assert server.headers[0]["Authorization"] == f"Bearer {KEY}"  # the server did get it
    cards, message = memory.path.read_text(), error.value
    assert "your key is" in cards
    for text in (cards, caplog.text, str(message), repr(vars(message)), repr(evaluator.backend.usage)):
        assert KEY not in text


def test_a_key_that_is_no_secret_changes_no_answer(connect, monkeypatch):
    with running() as server:
        server.answer = lambda prompt: "none of the tests"
        backend = connect(server)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        assert next(ServerBackend().answer(["x"], SCHEMA, 1.0, 0)).text == "none of the tests"
        server.answer = lambda prompt: f"the key is {KEY}"
        assert next(backend.answer(["x"], SCHEMA, 1.0, 0)).text == "the key is [key]"


def test_the_endpoint_is_model_and_host_without_password_or_key(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "https://user:word@judge.example:8000/v1")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_MODEL", "judge-1")
    assert endpoint() == ("judge-1", "judge.example:8000")
    assert endpoint("judge-2") == ("judge-2", "judge.example:8000")
    monkeypatch.delenv("OPENAI_BASE_URL")
    assert endpoint()[1] == ServerBackend().where == "api.openai.com"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BASE_URL", "http://["),
        ("BASE_URL", "http://me:sk-12345678@host:port/v1"),
        ("API_KEY", "sk-schlüssel"),
        ("API_KEY", "sk-12345678\n"),
    ],
)
def test_an_address_or_key_that_cannot_be_used_is_one_line_without_the_key(monkeypatch, name, value):
    monkeypatch.setenv(f"OPENAI_{name}", value)
    with pytest.raises(UserError, match=f"self_taught: OPENAI_{name}") as error:
        ServerBackend("judge-1")
    assert "\n" not in str(error.value) and "sk-" not in str(error.value)


def test_without_a_model_one_line_says_what_to_set(monkeypatch):
    monkeypatch.delenv("OPENAI_MODEL", raising=False)
    with pytest.raises(UserError, match="OPENAI_MODEL"):
        ServerBackend()
