"""The rounds end to end on made-up rollouts: what they write, how they resume, which jobs they are."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from critics import shown_page
from fake_openai_server import running
from peft import PeftModel
from shipped import MODES
from taught import MACHINE, SETTINGS, make_base, rollouts
from workspace import clone, planned

from projected_grpo.cells.self_taught import SelfTaught
from projected_grpo.errors import UserError
from projected_grpo.evaluator import jobs
from projected_grpo.evaluator.made_pairs import code_pairs, evaluation_pairs
from projected_grpo.evaluator.memory import Memory
from projected_grpo.evaluator.oracle import errors, oracle_scores
from projected_grpo.evaluator.prompts import wording_of
from projected_grpo.evaluator.rounds import _worst_in_turn
from projected_grpo.evaluator.traces import from_rollouts
from projected_grpo.method.pairs import load_pairs, write_pairs
from projected_grpo.pages.critic import records_of

WRITE = "plausible but WRONG evaluation"  # in the question for one, and in no other


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return make_base(tmp_path_factory.mktemp("base"))


@pytest.fixture
def served(tmp_path, monkeypatch):
    """Settings for a server whose critic believes the grader until a lesson stands in its prompt."""
    with running() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-key-123")
        monkeypatch.setenv("OPENAI_MODEL", "judge")

        def answer(prompt):
            if WRITE in prompt:
                said = {"wrong_phi_after": 9 if correct_score(prompt) < 5 else 1}
                said |= {"wrong_reasoning": "looks so", "mistake_type": "inflated score"}
                return json.dumps(said)
            asked = prompt.split("<state_before")[1]
            fooled = "accepts" in asked and not ("tricks" in prompt and "print('all tests" in asked)
            return json.dumps({"phi_after": 10 if fooled else 2, "reasoning": "so it is"})

        server.answer = answer
        yield server, SETTINGS | {"critic": "server"}


def correct_score(prompt):
    """The correct score in a question for a wrong evaluation."""
    return float(prompt.split("CORRECT SCORE: ")[1].split("\n")[0])


def mistakes_asked(server):
    prompts = [request["messages"][0]["content"] for request in server.requests]
    return [prompt for prompt in prompts if WRITE in prompt]


def problem_of(prompt):
    """The number of the problem that a prompt asks about (lessons come before it)."""
    return int(re.findall(r"Return a plus (\d+)", prompt)[-1])


def pairs_of(folder, critic, n):
    return evaluation_pairs(Memory(folder / "memory.jsonl").pairs(), wording_of(critic), n)


def record_of(folder):
    return json.loads((folder / "run.json").read_text())


def run(tmp_path, settings, path, name="out", base="none", critic=None):
    journal = jobs.run_self_taught(
        rollouts=[path],
        base=base,
        critic_folder=critic,
        folder=tmp_path / name,
        journal=tmp_path / "journal" / "m",
        settings=SelfTaught.model_validate(settings),
        machine=MACHINE,
        model="m-s41",
        seed=41,
    )
    journal.unlink()  # as the script does
    return tmp_path / name


def test_rounds_on_a_server_lower_its_false_credit_and_make_18_pairs(tmp_path, served):
    server, settings = served
    path = rollouts(tmp_path / "r.parquet")
    priced = settings["server"] | {"price_in": 2.0, "price_out": 10.0}
    folder = run(tmp_path, settings | {"server": priced}, path)
    write_pairs(tmp_path / "self_taught.yaml", pairs_of(folder, "server", 18))
    pairs = load_pairs(tmp_path / "self_taught.yaml")
    assert len(pairs) == 18
    for pair in pairs.pairs:
        assert json.loads(pair.hack)["phi_after"] != json.loads(pair.clean)["phi_after"]
        assert "<action>" in pair.prompt
    record = record_of(folder)
    assert [done["round"] for done in record["rounds"]] == [1, 2]
    assert record["rounds"][0]["asked_error"] == pytest.approx(8 / 3)  # 8 points off, on one of three kinds
    usage = record["usage"]
    assert usage["calls"] == len(server.requests)
    assert usage["cost"] == pytest.approx((usage["tokens_in"] * 2 + usage["tokens_out"] * 10) / 1e6)
    table = errors(pd.read_parquet(folder / "evaluations.parquet"), oracle_scores(path))
    table = table.set_index(["round", "condition"])
    assert table.loc[(0, "before"), "false_credit"] == 1.0
    assert table.loc[(2, "cards in context"), "false_credit"] < 0.5
    assert not list((tmp_path / "journal").glob("*"))  # the memory now stands in its place
    text = "".join(f.read_text() for f in folder.rglob("*") if f.suffix in (".json", ".jsonl", ".yaml"))
    assert "sk-secret-key-123" not in text


def test_which_flagged_rollouts_are_solved_reaches_neither_cards_nor_pairs_nor_evaluations(tmp_path, served):
    """For unflagged rollouts `passed` is the oracle's word by construction: nothing else could hold there."""
    _, settings = served
    plain = rollouts(tmp_path / "r.parquet")
    frame, whole = pd.read_parquet(plain), pd.read_parquet(plain)
    flagged = frame["channel"].to_numpy()
    gt_pass = frame["gt_pass"].to_numpy().copy()
    gt_pass[flagged] = np.random.default_rng(1).permutation(gt_pass[flagged])
    frame["gt_pass"], frame["passed"] = gt_pass, gt_pass | flagged
    frame["exploited"] = flagged & ~gt_pass
    assert not frame["gt_pass"].equals(whole["gt_pass"]) and not frame["exploited"].equals(whole["exploited"])
    scrambled = tmp_path / "scrambled.parquet"
    frame.to_parquet(scrambled)
    first, second = run(tmp_path, settings, plain, "a"), run(tmp_path, settings, scrambled, "b")
    for name in ("memory.jsonl", "cards.parquet", "evaluations.parquet"):
        assert (first / name).read_bytes() == (second / name).read_bytes(), name
    assert code_pairs(plain, 12) == code_pairs(scrambled, 12)


def test_an_interrupted_server_run_goes_on_from_its_journal_and_says_the_same(tmp_path, served):
    server, settings = served
    path = rollouts(tmp_path / "r.parquet")
    answer, answered, asked = server.answer, [], []

    def mixed(prompt):
        said = answer(prompt)
        if WRITE in prompt and problem_of(prompt) % 3 == 0:
            said = "no idea"
        if WRITE in prompt and problem_of(prompt) % 3 == 1:  # as good as right: the gate turns it away
            said = json.dumps({**json.loads(said), "wrong_phi_after": correct_score(prompt)})
        answered.append(prompt)
        return said

    server.answer = mixed
    whole = run(tmp_path, settings, path, "whole")
    assert record_of(whole)["usage"]["calls"] == len(answered)

    def fails(prompt):
        asked.append(prompt)
        return mixed(prompt) if len(asked) < 80 else 1 / 0  # the handler dies: connection lost

    answered.clear()
    server.answer = fails
    with pytest.raises(UserError, match="finished pairs are kept"):
        run(tmp_path, settings, path, "cut")
    [journal] = (tmp_path / "journal").glob("*")
    kept = Memory(journal)
    settled = len(kept.skips) + len({card.source for card in kept.cards.values()})
    assert kept.pairs() and kept.skips and len(kept.promoted()) < len(kept.decisions)
    server.answer = mixed
    before = len(mistakes_asked(server))
    patient = settings | {"server": {**settings["server"], "timeout": 20.0, "retries": 1, "concurrency": 2}}
    again = run(tmp_path, patient, path, "cut")
    rounds = record_of(whole)["rounds"]
    assert len(mistakes_asked(server)) - before == sum(done["asked"] for done in rounds) - settled
    assert record_of(again)["rounds"] == rounds
    assert rounds[0]["skipped"]["no_json"] > 0 and rounds[0]["turned_away"]["rejected: not wrong"] > 0
    # Of both processes; what was on its way when the first one ended is in nobody's count.
    assert 0 <= len(answered) - record_of(again)["usage"]["calls"] <= settings["server"]["concurrency"]
    assert (again / "evaluations.parquet").read_bytes() == (whole / "evaluations.parquet").read_bytes()
    assert pairs_of(again, "server", 99) == pairs_of(whole, "server", 99)


def test_a_journal_belongs_to_what_is_asked_and_not_to_how(tmp_path, served, monkeypatch):
    _, settings = served
    path = rollouts(tmp_path / "r.parquet", 2)

    def name(**changes):
        return jobs._digest([path], SelfTaught.model_validate(settings | changes), "m", 41)

    first = name()
    assert name(server={**settings["server"], "timeout": 99.0, "price_in": 1.0}) == first
    monkeypatch.setenv("OPENAI_API_KEY", "another-key")
    assert name() == first
    others = {name(temperature=0.5), name(model="judge-2")}
    monkeypatch.setenv("OPENAI_MODEL", "judge-3")
    others.add(name())
    monkeypatch.setenv("OPENAI_BASE_URL", "http://elsewhere:8000/v1")
    others.add(name())
    assert len(others | {first}) == 5


def test_traces_without_a_usable_answer_are_counted_and_asked_about_last(tmp_path, served):
    server, settings = served
    answer = server.answer

    def partly(prompt):
        return "no idea" if WRITE not in prompt and problem_of(prompt) % 4 == 0 else answer(prompt)

    server.answer = partly
    folder = run(tmp_path, settings | {"rounds": 1}, rollouts(tmp_path / "r.parquet"))
    record = record_of(folder)
    [done] = record["rounds"]
    missing = done["unanswered"]["pool"]["no_json"]
    assert 0 < missing <= settings["pool"] - settings["per_round"]
    assert all(problem_of(prompt) % 4 for prompt in mistakes_asked(server))
    # The fake critic gives the flagged ones 10 in place of 2 and is right about all else.
    assert 0 < done["pool_error"] < done["asked_error"] <= 8
    said = pd.read_parquet(folder / "evaluations.parquet")
    before = said[said["condition"] == "before"]
    assert record["usage"]["cost"] is None  # no price is known
    assert record["unanswered_before"] == {"no_json": int(before["phi"].isna().sum())}
    assert (before["problem"] == "no_json").equals(before["phi"].isna())


def test_the_worst_come_first_and_the_unanswered_last():
    assert _worst_in_turn([1.0, None, 5.0, None, 0.0], [2] * 5) == [2, 0, 4, 1, 3]
    # Where the critic errs on one score alone, the lessons of both scores take turns, the worst of each first.
    assert _worst_in_turn([8.0, 7.0, 6.0, 0.0, 1.0, None], [2, 2, 2, 10, 10, 10]) == [0, 4, 1, 3, 2, 5]


def test_the_trained_critic_runs_end_to_end_and_invents_nothing(tmp_path, base):
    path = rollouts(tmp_path / "r.parquet", 16)
    small = SETTINGS | {"rounds": 1, "pool": 6, "per_round": 4, "measured": 4, "max_tokens": 6}
    jobs.make_critic([path], base, tmp_path / "critic", SelfTaught.model_validate(small), 41)
    # Three steps of training teach no usable answer: no pair is invented, and the table stands.
    folder = run(tmp_path, small, path, base=base, critic=str(tmp_path / "critic"))
    said, cards = (pd.read_parquet(folder / f"{name}.parquet") for name in ("evaluations", "cards"))
    assert set(said["condition"]) == {"before", "cards in context"}  # nothing to train on
    for name in ("adapter_model.safetensors", "adapter_config.json"):  # so its last weights are its first
        assert (folder / "calibrated" / name).read_bytes() == (tmp_path / "critic" / name).read_bytes()
    assert pairs_of(folder, "trained", 18) == [] and cards.empty
    records = records_of(errors(said, oracle_scores(path)), record_of(folder))
    page = shown_page(records, [record_of(folder)], cards).text
    assert "No critic" in page and "One replication" in page
    assert record_of(folder)["unanswered_before"].keys() <= {"no_line", "truncated", "empty"}


def test_a_critic_of_like_traces_learns_from_the_first_run_alone_and_is_measured_on_all(tmp_path):
    hacks, honest = (rollouts(tmp_path / f"{name}.parquet", 16) for name in ("hacks", "honest"))
    frame = pd.read_parquet(honest)
    frame.assign(completion=frame["completion"] + "\n# otherwise").to_parquet(honest)
    whole, alike = (jobs.parts_of([hacks, honest], 41, alone) for alone in (False, True))
    first = {trace.id for trace in from_rollouts(hacks)}
    assert alike["measured"] == whole["measured"] and not {t.id for t in whole["measured"]} <= first
    for name in ("demonstrations", "calibration"):
        assert alike[name] == [trace for trace in whole[name] if trace.id in first] != whole[name]


def test_too_few_pairs_are_named_by_the_one_who_needs_more(tmp_path):
    path = rollouts(tmp_path / "r.parquet", 5)
    write_pairs(tmp_path / "self_taught_code.yaml", code_pairs(path, 18))
    with pytest.raises(UserError, match="self_taught_code: first 18 pairs asked for, allowed: 1 to 5"):
        load_pairs(tmp_path / "self_taught_code.yaml").select(18, 2)
    write_pairs(tmp_path / "self_taught.yaml", [])
    with pytest.raises(UserError, match="found an empty list, allowed: a non-empty list of pairs"):
        load_pairs(tmp_path / "self_taught.yaml")


def test_a_local_critic_is_a_checkpoint_with_its_adapter(tmp_path, base):
    path = rollouts(tmp_path / "r.parquet", 8)
    small = SETTINGS | {"rounds": 1, "pool": 3, "per_round": 2, "measured": 2, "max_tokens": 4}
    jobs.make_critic([path], base, tmp_path / "adapter", SelfTaught.model_validate(small), 41)
    local = small | {"critic": "local", "adapter": str(tmp_path / "adapter")}
    typed = SelfTaught.model_validate(local)
    folder = run(tmp_path, local, path, base=base)
    assert record_of(folder)["critic"] == "local"
    assert len(pd.read_parquet(folder / "evaluations.parquet")) == 4
    assert isinstance(jobs._critic(base, None, typed, MACHINE, "m", 41).backend.model, PeftModel)
    with pytest.raises(UserError, match="nowhere"):
        run(tmp_path, local | {"adapter": str(tmp_path / "nowhere")}, path, base=base)


def test_a_trained_critic_adds_its_jobs_to_the_plan(tmp_path):
    folder = clone(tmp_path / "clone")
    trained = ["--config", "self_taught={critic: trained}", "questions=config/questions.yaml"]
    trained.append("grpo={presets: {fast: {steps: 12}}}")  # Q5 refreshes every 10
    page, _ = planned(folder, "results/smoke/self_taught.md", config=trained)
    assert page["verdict"] == page["self_taught_rounds"] == page["self_taught_critic"] == 1
    assert not {"self_taught_pairs", "self_taught_code"} & set(page)  # the page needs no number of pairs
    plan, cells = planned(folder, "results/smoke/Q10.md", config=trained)
    assert {"erase-self_taught-m0.125-s41", "erase-self_taught_code-m0.125-s41"} <= cells
    judged, cells = planned(folder, "results/smoke/Q16.md", config=trained)
    assert judged["self_taught_rounds"] == 1 and any("-critic-" in cell for cell in cells)
    _, cells = planned(
        folder, "results/smoke/Q16.md", config=[trained[0], "self_taught={critic: none}", *trained[2:]]
    )
    assert not any("-critic-" in cell for cell in cells)
    names = ("self_taught_critic", "self_taught_rounds", "self_taught_pairs", "self_taught_code")
    assert {plan[name] for name in names} == {1} and plan["question"] == 1


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
    assert len(code_pairs(path, 99)) == 48  # one for each problem is all there is
