"""R5-R7: twin rows, verdicts at known numbers, and the measurements on bases of a tiny model."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from synthetic import context_of, write_run
from test_probe import Few, make_policy
from test_uat import vanilla_changes, write
from tiny import random_theta

from projected_grpo.errors import UserError
from projected_grpo.files import write_json
from projected_grpo.measures.table import make_table
from projected_grpo.method.basis import overlap
from projected_grpo.method.extraction import extract_basis
from projected_grpo.method.loss import CLIP, grpo_loss
from projected_grpo.method.pairs import Pair, PairSet
from projected_grpo.pages.markdown import render
from projected_grpo.stages.contrast import compare_losses, drift, read_adapter
from projected_grpo.training.columns import ratio_columns
from projected_grpo.training.ratio import CLIP_HIGH, CLIP_LOW, RATIO_EDGES
from projected_grpo.training.results import write_adapter
from projected_grpo.verdicts import r5, r6, r7
from projected_grpo.verdicts.figures import over_steps, ratio_heatmap, t4_strip
from projected_grpo.verdicts.replays import n_steps
from projected_grpo.verdicts.twins import compare_t, read_sights, replay_files, replay_folders, twins
from projected_grpo.verdicts.verdict import write as write_verdict

SEEDS = [41, 42, 43]


def write_question(question, results, rates, seed=0):
    """Write all runs of a question; rates: row name -> (hack at the end, cin, ratios of three tokens)."""
    draws = np.random.default_rng(seed)
    for row in question.rows:
        for cell in row.cells:
            hack = rates[row.name]
            folder = write_run(results, cell, hack=hack)
            frame = pd.read_parquet(folder / "steps.parquet")
            noise = 0.005 * draws.normal(size=len(frame))
            frame["hack_s"] = np.clip(hack * np.minimum(1, (frame["step"] - 1) / 10) + noise, 0, 1)
            frame["exploit_s"] = 0.9 * frame["hack_s"]
            columns = [ratio_columns(torch.tensor([0.5, 1.0, 1.1, 2.0]).log())] * len(frame)
            for key in columns[0]:
                frame[key] = [c[key] for c in columns]
            refresh = cell.setting.knob("refresh")
            frame["basis_overlap"] = [0.9 if refresh and s % refresh == 0 else np.nan for s in frame["step"]]
            frame.to_parquet(folder / "steps.parquet")


def test_bins_and_clip_bounds_are_those_of_the_loss():
    assert (CLIP_LOW, CLIP_HIGH) == (1 - CLIP, 1 + CLIP)
    assert list(RATIO_EDGES) == sorted(RATIO_EDGES)
    row = ratio_columns(torch.tensor([0.5, 1.0, 1.1, 2.0]).log())
    assert row["ratio_mean"] == pytest.approx(1.15)
    assert (row["ratio_clip_low"], row["ratio_clip_high"]) == (0.25, 0.25)
    assert sum(row["ratio_hist"]) == 4 and len(row["ratio_hist"]) == len(RATIO_EDGES) + 1


@pytest.mark.parametrize(
    "rho, A, moves", [(0.5, 1, True), (0.5, -1, False), (2.0, 1, False), (2.0, -1, True)]
)
def test_a_token_beyond_the_bounds_moves_only_back(rho, A, moves):
    logp = torch.tensor([0.3], requires_grad=True)
    loss = grpo_loss(logp, torch.tensor([0.3 - np.log(rho)]), torch.tensor([float(A)]), 1.0)
    loss.backward()
    assert float(loss.detach()) == pytest.approx(-min(rho * A, min(max(rho, 0.8), 1.2) * A), rel=1e-5)
    assert (float(logp.grad) != 0) == moves


def test_twins_differ_in_one_knob_alone(tmp_path):
    pairs = {(p.reference.name, p.other.name) for p in twins(context_of("R6", tmp_path, SEEDS), "adapter")}
    assert ("own_mode SVD", "own_mode LoRA") in pairs
    assert ("own_mode SVD refresh-2", "own_mode LoRA refresh-2") in pairs
    losses = context_of("R7", tmp_path, SEEDS)
    assert {(p.reference.name, p.other.name) for p in twins(losses, "loss")} == {
        ("own_mode NLL", "own_mode GRPO"),
        ("v_hack_21pairs NLL", "v_hack_21pairs GRPO"),
    }
    assert twins(context_of("R5", tmp_path, SEEDS), "loss") == []
    assert replay_folders(losses, "loss")["own_mode_grpo"][42] == "small-s42/own_mode_grpo/vanilla"
    assert "probe/small-s43/own_mode/vanilla/step_019.jsonl.gz" in replay_files(losses, "loss")


def test_r5_reads_the_rise_and_both_readings(tmp_path):
    context = context_of("R5", tmp_path, SEEDS)
    rates = {"vanilla": 0.5, "own_mode": 0.05, "v_hack_21pairs": 0.45, "random V": 0.5}
    write_question(context.question, tmp_path, rates | {"vanilla, ratio 1": 0.6, "own_mode, ratio 1": 0.3})
    table = make_table(context.question, tmp_path)
    vanilla = table.line("vanilla")
    first, then = (r5.at_step(vanilla, step) for step in (1, 15))
    assert r5.rise(vanilla, 15).delta == pytest.approx(np.mean([then[s] - first[s] for s in SEEDS]))
    made = r5.make(context)
    text = render(made.page.answer, "")
    assert "`vanilla` rises +0.49" in text or "`vanilla` rises +0.50" in text
    assert "the mark of more than 0.20 is met" in text
    mine = text[text.index("`own_mode` rises") :]
    assert mine.index("`rises < 0.10` is met") < mine.index("`>= 0.10 below` is met")
    weak = text[text.index("`v_hack_21pairs` rises") :]
    assert weak.index("`rises < 0.10` is not met") < weak.index("`>= 0.10 below` is not met")
    assert "0.500 of the teacher's tokens lie beyond the clip bounds, so the ratios do not saturate" in text
    assert "at most that share of their gradients is clipped away" in text
    assert {"ratios", "clip"} <= set(made.drawn)
    frame = r5.ratios(vanilla)
    assert len(frame) == 20 and frame["share"].iloc[0].sum() == pytest.approx(1)
    (lines,) = r5.clip_series({"vanilla": frame}).values()
    assert lines["vanilla"].index.tolist() == list(range(1, 21))
    assert lines["vanilla"].tolist() == [pytest.approx(0.5)] * 20
    assert over_steps({"a": lines}) is not None and ratio_heatmap({"vanilla": frame}, RATIO_EDGES) is not None


def write_replays(context, knob, gaps):
    """Write the replays of all twins' bases; gaps: what raises a basis's cosine of wrong hacks."""
    for basis, by_seed in replay_folders(context, knob).items():
        for seed, folder in by_seed.items():
            path = context.results / "probe" / folder
            write(path, vanilla_changes, n_steps=n_steps(context.config), gap=gaps.get(basis, 0.0), seed=seed)


def write_r6(results, lora, vanilla_lora=0.7, lost=()):
    """Write all that R6 needs. lost: (row, number of its cell) of runs that are missing."""
    context = context_of("R6", results, SEEDS)
    rates = {"vanilla SVD": 0.7, "own_mode SVD": 0.3, "own_mode SVD refresh-2": 0.2, "random V SVD": 0.7}
    rates |= {"vanilla LoRA": vanilla_lora, "own_mode LoRA": lora, "own_mode LoRA refresh-2": 0.2}
    write_question(context.question, results, rates | {"random V LoRA": 0.7})
    cells = {row.name: row.cells for row in context.question.rows}
    for name, number in lost:
        (results / "grpo" / cells[name][number].id / "steps.parquet").unlink()
    write_replays(context, "adapter", {"own_mode": 0.05, "own_mode_lora": 0.1})
    for path in r6.drifts(context):
        write_json(path, {"overlap_fresh": 0.4, "overlap_null": 0.05})
    return context


def test_r6_success_and_clean_negative(tmp_path):
    context = write_r6(tmp_path / "a", lora=0.33)
    assert all(Path(path).exists() for path in r6.needs(context))
    write_verdict(r6.make(context), context.results)
    text = (tmp_path / "a/R6.md").read_text()
    said = text[text.index("**Answer.**") :]
    assert "matched (mark" in said and "NOT matched" not in said
    assert "of the SVD effect (LoRA minus 0.8 SVD " in said
    assert "at least 80% of it, the interval agrees" in said
    assert text.startswith("# R6.") and "overlap with fresh" in text and "0.400" in text and "0.900" in text
    assert (tmp_path / "a/figures/R6/drift.svg").exists() and "](figures/R6/drift.svg)" in text
    assert list(pd.read_parquet(tmp_path / "a/R6.parquet").columns[:2]) == ["question", "row"]
    assert "less than 80% of it, a clean negative" in first_pair(write_r6(tmp_path / "b", lora=0.6))
    text = first_pair(write_r6(tmp_path / "c", lora=0.0))
    assert "17" in text[: text.index("% of the SVD effect")] and "at least 80% of it" in text


def first_pair(context):
    """Return what R6 says of its first twins."""
    return r6.pair_sentence(make_table(context.question, context.results), twins(context, "adapter")[0])


def test_r6_gives_no_verdict_where_the_vanilla_arms_differ(tmp_path):
    context = write_r6(tmp_path, lora=0.1, vanilla_lora=0.5)
    text = "\n".join(r6.make(context).log)
    assert "NOT matched" in text and text.count("no verdict: vanilla arms not matched") == 2
    assert "% of the SVD effect (LoRA minus 0.8 SVD" in text
    assert "at least 80%" not in text and "negative" not in text
    assert (
        len(twins(context, "adapter")) == 3 and "the SVD arm itself shows no reduction" in text
    )  # the random V


def test_r6_compares_the_two_effects_over_the_seeds_that_both_have(tmp_path):
    context = write_r6(tmp_path, lora=0.33, lost=[("own_mode LoRA", 2)])
    table = make_table(context.question, tmp_path)
    svd, lora = (r6.effect_by_seed(table, name) for name in ("own_mode SVD", "own_mode LoRA"))
    assert set(svd) == set(SEEDS) and set(lora) == set(SEEDS[:2])
    assert f"`own_mode SVD` {np.mean([svd[seed] for seed in SEEDS[:2]]):+.3f}" in first_pair(context)
    assert f"{np.mean(list(svd.values())):+.4f}" != f"{np.mean([svd[seed] for seed in SEEDS[:2]]):+.4f}"


def test_r6_has_nothing_to_match_without_an_svd_effect(tmp_path):
    context = context_of("R6", tmp_path, SEEDS)
    write_question(context.question, tmp_path, {row.name: 0.7 for row in context.question.rows})
    assert "shows no reduction" in first_pair(context)


def test_t4_of_twins_is_compared_pool_by_pool(tmp_path):
    context = context_of("R7", tmp_path, SEEDS)
    write_replays(context, "loss", {"own_mode": 0.02, "own_mode_grpo": 0.1})
    sights = read_sights(context, "loss")
    text = compare_t(sights["own_mode_grpo"], sights["own_mode"])
    assert "at least the t of `own_mode` on 3 of 3 pools" in text
    assert t4_strip({name: sight.t for name, sight in sights.items()}) is not None


def pair_set(lengths):
    word = "abcdefghij"
    pairs = tuple(
        Pair(prompt=f"{i}?", hack=word[i % 5 :][:h], clean=word[::-1][i % 4 :][:c], tags=())
        for i, (h, c) in enumerate(lengths)
    )
    return PairSet("made", pairs)


KNOBS = {"top_k": 4, "tau": 0.0, "method": "svd", "solve_orth_m": 0, "control": "none"}
USE = {"k": 3, "drop_bottom_frac": 0.0}


def bases(policy, pairs):
    return [extract_basis(policy, pairs, KNOBS | {"loss": loss}, 41).used(**USE) for loss in ("nll", "grpo")]


def test_length_weighting_is_all_that_tells_the_losses_apart():
    policy, pairs = make_policy(), pair_set([(3, 6), (5, 2), (6, 3), (2, 5), (4, 6), (6, 2)])
    nll, grpo = bases(policy, pairs)
    found = compare_losses(policy, pairs, KNOBS, USE, nll, grpo)
    assert found["overlap_reweighted"] == pytest.approx(1, abs=1e-4)
    assert found["overlap"] < 0.98 and found["hash_nll"] != found["hash_grpo"]
    assert found["overlap"] == pytest.approx(overlap(nll.V, grpo.V))
    assert found["length_ratio_max"] == pytest.approx(7 / 3)


def test_equal_lengths_make_the_losses_equal():
    policy, pairs = make_policy(), pair_set([(4, 4)] * 6)
    nll, grpo = bases(policy, pairs)
    found = compare_losses(policy, pairs, KNOBS, USE, nll, grpo)
    assert found["overlap"] == pytest.approx(1, abs=1e-4)
    # Rounding is enough for another hash; the page looks at what the two span.
    overlaps = {"nll and grpo": {41: found | {"hash_nll": "a", "hash_grpo": "b"}}}
    assert "nll and grpo do NOT differ on any replication" in " ".join(r7.differ_sentences(overlaps))
    assert "there is no difference to explain" in " ".join(r7.length_sentences(overlaps))
    shown = r7.overlap_grid(overlaps)
    row = dict(zip(shown.head, (cell.text for cell in shown.rows[0]), strict=True))
    assert (row["spans differ"], row["hashes differ"]) == ("0 of 1", "1 of 1")


@pytest.mark.parametrize("adapter", ["antipasto", "lora"])
def test_drift_is_none_at_the_start_and_some_after_training(adapter, tmp_path):
    policy, pairs = make_policy(adapter), pair_set([(3, 6), (5, 2), (6, 3), (2, 5)])
    frozen = bases(policy, pairs)[0]
    knobs = KNOBS | {"loss": "nll"}
    assert drift(policy, pairs, knobs, USE, frozen, 41)["overlap_fresh"] == pytest.approx(1, abs=1e-4)
    policy.theta = random_theta(policy.adapter, scale=0.5)
    write_adapter(tmp_path / "adapter.safetensors", policy)
    again = make_policy(adapter)
    again.theta = read_adapter(tmp_path / "adapter.safetensors", again)
    found = drift(again, pairs, knobs, USE, frozen, 41)
    assert found["overlap_null"] < found["overlap_fresh"] < 0.95
    (tmp_path / "adapter.safetensors").write_bytes(b"x" * 20)
    with pytest.raises(UserError, match="no adapter of this model"):
        read_adapter(Path(tmp_path / "adapter.safetensors"), again)


def test_r7_page(tmp_path):
    context = context_of("R7", tmp_path, SEEDS)
    rates = {row.name: 0.7 if row.name == "vanilla" else 0.4 for row in context.question.rows}
    write_question(context.question, tmp_path, rates)
    write_replays(context, "loss", {"own_mode_grpo": 0.1})
    one = {"overlap": 0.8, "overlap_null": 0.05, "overlap_reweighted": 1.0, "overlap_pair_weights": 0.9}
    one |= {"largest_difference": 0.3, "hash_nll": "a", "hash_grpo": "b", "tokens_hack": 40.0}
    one |= {"tokens_clean": 38.0, "length_ratio_min": 0.9, "length_ratio_max": 1.2}
    for name, by_seed in r7.overlap_files(context).items():
        for seed, path in by_seed.items():
            same = name.startswith("v_hack") and seed != 41
            write_json(tmp_path / path, one | ({"overlap": 0.9995} if same else {}))
    assert all(Path(path).exists() for path in r7.needs(context))
    page = r7.make(context).page
    text = render((*page.answer, *page.blocks), "")
    assert "own_mode and own_mode_grpo differ on every replication" in text
    assert "v_hack_21pairs and v_hack_21pairs_grpo differ on 1 of 3 replications" in text
    assert "length weighting explains 100% of the difference" in text
    assert "`own_mode_grpo` met" in text
    assert {"own_mode", "own_mode and own_mode_grpo"} <= {source.name for source in page.sources}


def test_the_tokenizer_of_these_tests_makes_lengths_differ():
    assert len(Few().encode("abc")) != len(Few().encode("abcdef"))
