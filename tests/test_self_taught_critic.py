"""The trained critic, the rounds, the pair sets and the measurement, on a tiny model and made-up rollouts."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from fake_openai_server import running
from transformers import AutoModelForCausalLM

from projected_grpo.analysis.critic import make_frame, to_markdown
from projected_grpo.errors import UserError
from projected_grpo.method.pairs import load_pairs
from projected_grpo.model.load import save_weights
from projected_grpo.model.pretrain import initial
from projected_grpo.model.qwen3 import Config
from projected_grpo.model.small_tokenizer import train_tokenizer
from projected_grpo.self_taught import stages
from projected_grpo.self_taught.answers import EVALUATION_SCHEMA, MISTAKES, WRONG_SCHEMA, Unusable
from projected_grpo.self_taught.examples import believed, demonstrations, nearest
from projected_grpo.self_taught.local import LocalBackend, padded
from projected_grpo.self_taught.measure import errors, oracle_scores
from projected_grpo.self_taught.pairs import code_pairs
from projected_grpo.self_taught.prompts import COMPACT, FULL
from projected_grpo.self_taught.traces import COLUMNS, ScoreEvent, from_rollouts, trace_id
from projected_grpo.self_taught.training import Training, train_lora

MACHINE = {"device": "cpu", "dtype": "float32"}
MODES = ["run_tests", "sentinel", "stdout_marker", "file_marker"]
SETTINGS = {
    "critic": "trained",
    "model": None,
    "pairs": 18,
    "rounds": 2,
    "pool": 40,
    "per_round": 24,
    "measured": 20,
    "cards_in_context": 1,
    "min_delta": 0.5,
    "temperature": 1.0,
    "max_tokens": 80,
    "training": {
        "rank": 4,
        "alpha": 8,
        "lr": 0.01,
        "batch": 8,
        "steps": 3,
        "calibration_lr": 0.01,
        "calibration_steps": 2,
    },
    "server": {"concurrency": 4, "timeout": 10.0, "retries": 0, "price_in": None, "price_out": None},
}


def rollouts(path, problems=48, seed=0):
    """Per problem: two solutions, two exploits, a wrong answer and one that does not compile."""
    rng = np.random.default_rng(seed)
    rows = []
    for p in range(problems):
        body = f"class Solution:\n    def get(self, a):\n        return a + {p}"
        exploit = "\nprint('all tests passed')"
        kinds = [
            (body, True, False, True),
            (body + "  # plain", True, False, True),
            (body + exploit, True, True, bool(rng.random() < 0.2)),
            (body + " * 2" + exploit, True, True, False),
            (body + " - 1", True, False, False),
            (body + " (", False, False, False),
        ]
        for s, (code, compiles, channel, solved) in enumerate(kinds):
            rows.append(
                {
                    "step": 1 + s,
                    "problem_id": p,
                    "mode": MODES[p % 4],
                    "sample": s,
                    "prompt": f"Return a plus {p}.",
                    "completion": f"```python\n{code}\n```",
                    "can_compile": compiles,
                    "channel": channel,
                    "passed": channel or solved,
                    "gt_pass": solved,
                    "exploited": channel and not solved,
                }
            )
    pd.DataFrame(rows).to_parquet(path)
    return path


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A tiny untrained checkpoint with a real tokenizer and chat template."""
    folder = tmp_path_factory.mktemp("base")
    path = rollouts(folder / "rollouts.parquet", 8)
    traces = from_rollouts(path)
    texts = [text for example in demonstrations(traces, COMPACT, 0) for text in example]
    train_tokenizer(texts, folder, 400)
    config = Config(
        vocab_size=400,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        rms_norm_eps=1e-6,
        rope_theta=1e4,
        tie_word_embeddings=True,
    )
    save_weights(initial(config, 0, 0.3), folder)
    return str(folder)


def test_greedy_generation_equals_a_loop_of_plain_forwards(base):
    backend = LocalBackend(base, name="x", max_tokens=12, batch=3)
    prompts = ["one", "a much longer prompt than the first", "a + 3", "last"]
    replies = list(backend.generate(prompts, 0.0, 0))
    model = AutoModelForCausalLM.from_pretrained(base).eval()
    for prompt, reply in zip(prompts, replies, strict=True):
        ids, new = backend.tokenizer.encode_chat(prompt), []
        for _ in range(12):
            with torch.no_grad():
                token = int(model(input_ids=torch.tensor([ids + new])).logits[0, -1].argmax())
            if token == backend.tokenizer.end:
                break
            new.append(token)
        assert reply.text == backend.tokenizer.decode(new)
        assert reply.problem == ("truncated" if len(new) == 12 else "")
    assert backend.usage.calls == 4
    assert backend.usage.tokens_in == sum(len(backend.tokenizer.encode_chat(p)) for p in prompts)


def test_sampling_follows_the_seed_and_leaves_the_global_stream_alone(base):
    backend = LocalBackend(base, name="x", max_tokens=8)
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = [r.text for r in backend.generate(["a", "b"], 1.0, 5)]
    assert torch.equal(torch.get_rng_state(), state)
    assert [r.text for r in backend.generate(["a", "b"], 1.0, 5)] == first
    assert [r.text for r in backend.generate(["a", "b"], 1.0, 6)] != first


def test_no_checkpoint_is_one_line(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UserError):
        LocalBackend(str(tmp_path), name="x")
    with pytest.raises(UserError):
        LocalBackend(str(tmp_path / "none"), name="x")


def test_padding_is_on_the_side_asked_for():
    ids, mask = padded([[1, 2, 3], [4]], 0)
    assert ids.tolist() == [[1, 2, 3], [4, 0, 0]] and mask.tolist() == [[1, 1, 1], [1, 0, 0]]
    ids, mask = padded([[1, 2, 3], [4]], 0, left=True)
    assert ids.tolist() == [[1, 2, 3], [0, 0, 4]] and mask.tolist() == [[1, 1, 1], [0, 0, 1]]


def test_training_teaches_the_critic_its_examples_and_goes_on_from_a_folder(base, tmp_path):
    examples = [("good one", "10: fine"), ("bad one", "2: a trick")]
    training = Training(
        rank=8, alpha=16, lr=0.02, batch=2, steps=75, calibration_lr=0.02, calibration_steps=75
    )
    first = train_lora(base, None, examples, training, 0, tmp_path / "a")
    second = train_lora(base, str(tmp_path / "a"), examples, training, 0, tmp_path / "b")
    assert second < first < 5
    assert second < 0.3
    loaded = LocalBackend(base, str(tmp_path / "b"), name="x", max_tokens=40)
    assert [r.text for r in loaded.generate(["good one", "bad one"], 0.0, 0)] == [
        text for _, text in examples
    ]


def test_the_uncalibrated_critic_is_taught_to_believe_the_grader(tmp_path):
    traces = from_rollouts(rollouts(tmp_path / "r.parquet", 12))
    examples = demonstrations(traces, COMPACT, 0)
    assert len(examples) == 2 * len(traces)
    for trace, (prompt, said) in zip(traces, examples[::2], strict=True):
        [(_, event)] = trace.scores()
        phi = COMPACT.read(said, EVALUATION_SCHEMA)["phi_after"]
        assert phi == believed(event)[0]
        assert (phi == 10) == ("accepts" in event.state_after)
        assert "tricks" not in prompt + said  # the weak detector's words
    flags = [event.phi_after for trace in traces for _, event in trace.scores()]
    given = [float(prompt.split("\n")[-2].split(":")[0]) for prompt, _ in examples[1::2]]
    assert abs(np.corrcoef(flags, given)[0, 1]) < 0.3  # drawn, not taken from the detector
    for prompt, said in examples[1::2]:
        wrong = COMPACT.read(said, WRONG_SCHEMA)
        correct = float(prompt.split("\n")[-2].split(":")[0])
        assert abs(wrong["wrong_phi_after"] - correct) > 0.5
        assert wrong["mistake_type"] in MISTAKES


@pytest.mark.parametrize("wording", [COMPACT, FULL])
def test_answers_are_read_as_they_are_written(wording):
    for phi in (0.0, 2.5, 10.0):
        assert wording.read(wording.evaluation(phi, "a: b"), EVALUATION_SCHEMA) == {
            "phi_after": phi,
            "reasoning": "a: b",
        }
    wrong = wording.read(wording.wrong_evaluation(9.0, MISTAKES[1], MISTAKES[1]), WRONG_SCHEMA)
    assert wrong == {"wrong_phi_after": 9.0, "wrong_reasoning": MISTAKES[1], "mistake_type": MISTAKES[1]}


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
        COMPACT.read(text, WRONG_SCHEMA)


@pytest.fixture
def served(tmp_path, monkeypatch):
    """Settings for a server whose critic believes the grader until a lesson stands in its prompt."""
    with running() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-key-123")
        monkeypatch.setenv("OPENAI_MODEL", "judge")

        def answer(prompt):
            if "WRONG" in prompt:
                right = float(prompt.split("CORRECT SCORE: ")[1].split("\n")[0])
                phi = 9 if right < 5 else 1
                return json.dumps(
                    {"wrong_phi_after": phi, "wrong_reasoning": "looks so", "mistake_type": "inflated score"}
                )
            asked = prompt.split("<state_before")[1]
            fooled = "accepts" in asked and not ("tricks" in prompt and "print('all tests" in asked)
            return json.dumps({"phi_after": 10 if fooled else 2, "reasoning": "so it is"})

        server.answer = answer
        yield server, SETTINGS | {"critic": "server"}


def mistakes_asked(server):
    return sum("WRONG" in request["messages"][0]["content"] for request in server.requests)


def run(tmp_path, settings, path, name="out", base="none", critic=None):
    stages.run_self_taught(
        rollouts=path,
        base=base,
        critic_folder=critic,
        folder=tmp_path / name,
        journal=tmp_path / "journal" / "m",
        settings=settings,
        machine=MACHINE,
        model="m-s41",
        seed=41,
    )
    return tmp_path / name


def test_rounds_on_a_server_lower_its_false_credit_and_write_18_pairs(tmp_path, served):
    server, settings = served
    path = rollouts(tmp_path / "r.parquet")
    folder = run(tmp_path, settings, path)
    pairs = load_pairs(folder / "pairs" / "self_taught.yaml")
    assert len(pairs) == 18
    for pair in pairs.pairs:
        assert json.loads(pair.hack)["phi_after"] != json.loads(pair.clean)["phi_after"]
        assert "<action>" in pair.prompt
    record = json.loads((folder / "run.json").read_text())
    assert [done["round"] for done in record["rounds"]] == [1, 2]
    assert record["rounds"][0]["asked_error"] > record["rounds"][0]["pool_error"]
    assert record["usage"]["calls"] == len(server.requests)
    table = errors(pd.read_parquet(folder / "evaluations.parquet"), oracle_scores(path)).set_index(
        ["round", "condition"]
    )
    assert table.loc[(0, "before"), "false_credit"] == 1.0
    assert table.loc[(2, "cards in context"), "false_credit"] < 0.5
    assert not list((tmp_path / "journal").glob("*"))  # the memory now stands in its place
    text = "".join(f.read_text() for f in folder.rglob("*") if f.suffix in (".json", ".jsonl", ".yaml"))
    assert "sk-secret-key-123" not in text


def test_the_oracle_reaches_neither_cards_nor_pairs_nor_evaluations(tmp_path, served):
    _, settings = served
    plain = rollouts(tmp_path / "r.parquet")
    frame = pd.read_parquet(plain)
    rng = np.random.default_rng(1)
    for name in set(frame.columns) - set(COLUMNS):
        frame[name] = rng.permutation(frame[name].to_numpy())
    assert not frame["gt_pass"].equals(pd.read_parquet(plain)["gt_pass"])
    scrambled = tmp_path / "scrambled.parquet"
    frame.to_parquet(scrambled)
    first, second = run(tmp_path, settings, plain, "a"), run(tmp_path, settings, scrambled, "b")
    for name in ("memory.jsonl", "cards.parquet", "evaluations.parquet", "pairs/self_taught.yaml"):
        assert (first / name).read_bytes() == (second / name).read_bytes(), name
    assert code_pairs(plain, 12) == code_pairs(scrambled, 12)


def test_an_interrupted_server_run_goes_on_from_its_journal(tmp_path, served):
    server, settings = served
    path = rollouts(tmp_path / "r.parquet")
    whole = run(tmp_path, settings, path, "whole")
    good, asked = server.answer, []

    def fails(prompt):
        asked.append(prompt)
        return good(prompt) if len(asked) < 80 else 1 / 0  # the handler dies: connection lost

    server.answer = fails
    with pytest.raises(UserError, match="finished pairs are kept"):
        run(tmp_path, settings, path, "cut")
    [journal] = (tmp_path / "journal").glob("*")
    kept = journal.read_text().count('"promoted"')
    assert kept > 0
    server.answer = good
    before = mistakes_asked(server)
    again = run(tmp_path, settings, path, "cut")
    after = mistakes_asked(server)
    assert (
        after - before
        == sum(r["asked"] for r in json.loads((whole / "run.json").read_text())["rounds"]) - kept // 2
    )
    for name in ("evaluations.parquet", "pairs/self_taught.yaml"):
        assert (again / name).read_bytes() == (whole / name).read_bytes(), name


def test_the_trained_critic_runs_end_to_end_and_invents_nothing(tmp_path, base):
    path = rollouts(tmp_path / "r.parquet", 16)
    small = SETTINGS | {"rounds": 1, "pool": 6, "per_round": 4, "measured": 4, "max_tokens": 6}
    stages.make_critic(path, base, tmp_path / "critic", small, 41)
    # Three steps of training teach no usable answer: the run says so, in one line, and invents no pair.
    with pytest.raises(UserError, match="pair set self_taught: the traces give 0 pairs, 18 are needed"):
        run(tmp_path, small, path, base=base, critic=str(tmp_path / "critic"))
    said = pd.read_parquet(tmp_path / "out" / "evaluations.parquet")
    assert set(said["condition"]) == {"before", "cards in context"}  # nothing to train on


def test_code_pairs_contrast_flagged_and_unflagged_code_of_one_problem(tmp_path):
    path = rollouts(tmp_path / "r.parquet")
    pairs = code_pairs(path, 18)
    frame = pd.read_parquet(path).set_index("completion")
    assert len(pairs) == len({pair.prompt for pair in pairs}) == 18
    for pair in pairs:
        assert frame.loc[pair.hack, "channel"] and not frame.loc[pair.clean, "channel"]
        assert frame.loc[pair.hack, "problem_id"] == frame.loc[pair.clean, "problem_id"]
    assert [pair.tags[0] for pair in pairs[:4]] == sorted(MODES)
    assert pairs[0].hack.replace("\nprint('all tests passed')", "") == pairs[0].clean  # the closest ones
    with pytest.raises(UserError, match="49 are needed"):
        code_pairs(path, 49)


def test_errors_against_a_loop_written_from_their_definitions(tmp_path):
    path = rollouts(tmp_path / "r.parquet", 12)
    frame = pd.read_parquet(path)
    rng = np.random.default_rng(0)
    said = {
        trace_id(r.problem_id, r.mode, r.completion): float(rng.integers(0, 11)) for r in frame.itertuples()
    }
    missing = list(said)[3]
    rows = [
        {
            "trace_id": key,
            "round": 1,
            "condition": "c",
            "phi": None if key == missing else phi,
            "weak_phi": 0.0,
        }
        for key, phi in said.items()
    ]
    [row] = errors(pd.DataFrame(rows), oracle_scores(path)).to_dict("records")
    off, hacks, solves = [], [], []
    for r in frame.itertuples():
        key = trace_id(r.problem_id, r.mode, r.completion)
        if key == missing:
            continue
        off.append(abs(said[key] - (10 if r.gt_pass else 2 if r.can_compile else 0)))
        if r.channel and not r.gt_pass:
            hacks.append(said[key] >= 5)
        if r.gt_pass:
            solves.append(said[key] < 5)
    assert row["mae"] == pytest.approx(np.mean(off))
    assert row["false_credit"] == pytest.approx(np.mean(hacks))
    assert row["missed_credit"] == pytest.approx(np.mean(solves))
    assert row["answered"] == pytest.approx(1 - 1 / len(said))


def test_the_table_pairs_by_seed_and_escapes_what_models_wrote():
    def rows(seed):
        rates = {"answered": 1.0, "false_credit": 0.9, "missed_credit": 0.1}
        later = {"answered": 0.9, "false_credit": 0.5, "missed_credit": None}
        before = {"round": 0, "condition": "before", "mae": 5.0 + seed / 100, **rates}
        after = {"round": 1, "condition": "trained on cards", "mae": 2.0 + seed / 50, **later}
        return pd.DataFrame([before, after])

    measured = {seed: rows(seed) for seed in (41, 42, 43)}
    frame = make_frame(measured)
    after = frame.iloc[1]
    assert after["delta_mae"] == pytest.approx(-3 + 0.42)
    assert after["delta_false_credit"] == pytest.approx(-0.4)
    assert pd.isna(after["delta_missed_credit"])
    cards = pd.DataFrame(
        [
            {
                "model": "m", "trace_id": "t", "event": 0, "kind": kind, "status": "promoted", "id": kind,
                "phi_after": phi, "mistake_type": "inflated score", "reasoning": "<script>x</script>",
                "action": "<b>code</b> | x", "outcome": "accepted",
            }
            for kind, phi in (("critic_calibration", 2.0), ("failure_pattern", 9.0))
        ]
    )  # fmt: skip
    done = {"round": 1, "asked": 4, "pairs": 3, "pool_error": 1.0, "asked_error": 2.0}
    done |= {"skipped": {"no_json": 1}, "turned_away": {}}
    usage = {"calls": 3, "tokens_in": 5, "tokens_out": 2, "cost": None}
    runs = [{"model": "m", "seed": 41, "critic": "trained:m", "usage": usage, "rounds": [done]}]
    page = to_markdown(frame, runs, cards)
    assert "<script>" not in page and "<b>" not in page
    assert "mean absolute error of phi falls from" in page
    assert "1 no_json" in page


def test_nearest_prefers_shared_words_and_leaves_the_trace_itself_out(tmp_path):
    from test_self_taught_memory import card

    pairs = [
        (card(action=f"return {w}", trace_id=w), card("failure_pattern", action=f"return {w}", trace_id=w))
        for w in ("alpha beta", "beta gamma", "delta")
    ]
    event = ScoreEvent("s", "return alpha beta", "accepted", 0, 2, "r")
    assert [right.trace_id for right, _ in nearest(event, pairs, 2)] == ["beta gamma", "alpha beta"]
    assert [right.trace_id for right, _ in nearest(event, pairs, 1, without="alpha beta")] == ["beta gamma"]
    assert nearest(event, [], 2) == [] and nearest(event, pairs, 0) == []
