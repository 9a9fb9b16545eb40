"""R5-R7: twin rows, and verdicts at known numbers."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from synthetic import context_of, write_run
from test_uat import vanilla_changes, write

from projected_grpo.files import write_json
from projected_grpo.measures.table import make_table
from projected_grpo.pages.markdown import render
from projected_grpo.training.columns import ratio_columns
from projected_grpo.training.ratio import RATIO_EDGES
from projected_grpo.verdicts import r5, r6, r7
from projected_grpo.verdicts.figures import over_steps, ratio_heatmap, t4_strip
from projected_grpo.verdicts.replays import n_steps
from projected_grpo.verdicts.twins import compare_t, read_sights, replay_files, replay_folders, twins
from projected_grpo.verdicts.verdict import write as write_verdict

SEEDS = [41, 42, 43]
OVERLAP = {"overlap": 0.8, "overlap_null": 0.05, "overlap_reweighted": 1.0, "overlap_pair_weights": 0.9}
OVERLAP |= {"largest_difference": 0.3, "hash_nll": "a", "hash_grpo": "b", "tokens_hack": 40.0}
OVERLAP |= {"tokens_clean": 38.0, "length_ratio_min": 0.9, "length_ratio_max": 1.2}


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
            ratios, A = torch.tensor([0.5, 1.0, 1.1, 2.0]), torch.tensor([-1.0, 1.0, -1.0, -1.0])
            columns = [ratio_columns(ratios.log(), A)] * len(frame)
            for key in columns[0]:
                frame[key] = [c[key] for c in columns]
            refresh = cell.setting.knob("refresh")
            renewed = [bool(refresh) and s % refresh == 0 for s in frame["step"]]
            frame["basis_overlap"] = np.where(renewed, 0.9, np.nan)
            frame["basis_overlap_first"] = np.where(renewed, 0.7, np.nan)
            frame.to_parquet(folder / "steps.parquet")


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
    assert (
        "the clip leaves 0.250 of them no gradient" in text
    )  # of ratios .5, 1, 1.1, 2 the first: A < 0 but once
    grid = r5.ratio_grid(
        table, {name: r5.ratios(table.line(name)) for name in ("vanilla", "vanilla, ratio 1")}
    )
    assert [row[-1].text for row in grid.rows] == ["0.250"] * 3 + ["–"] * 3
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
        looks = [(20, 0.4)] if "lora" in path else [(5, 0.7), (10, 0.6), (15, 0.5), (20, 0.4)]
        rows = [{"step": step, "overlap_fresh": share, "overlap_null": 0.05} for step, share in looks]
        write_json(path, {"looks": rows})
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
    table, measured = make_table(context.question, context.results), r6.measured(context)
    curves = r6.drift_series(table, measured)["frozen V: overlap with a fresh one"]
    assert curves["own_mode SVD"].to_dict() == pytest.approx({0: 1.0, 5: 0.7, 10: 0.6, 15: 0.5, 20: 0.4})
    assert curves["own_mode LoRA"].to_dict() == pytest.approx({20: 0.4}), "one look makes no line"
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
        len(twins(context, "adapter")) == 3 and "the SVD arm is itself not shown to lower it" in text
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
    assert "not shown to lower it" in first_pair(context)


def test_t4_of_twins_is_compared_pool_by_pool(tmp_path):
    context = context_of("R7", tmp_path, SEEDS)
    write_replays(context, "loss", {"own_mode": 0.02, "own_mode_grpo": 0.1})
    sights = read_sights(context, "loss")
    text = compare_t(sights["own_mode_grpo"], sights["own_mode"])
    assert "at least the t of `own_mode` on 3 of 3 pools" in text
    assert t4_strip({name: sight.t for name, sight in sights.items()}) is not None


def test_r7_page(tmp_path):
    context = context_of("R7", tmp_path, SEEDS)
    rates = {row.name: 0.7 if row.name == "vanilla" else 0.4 for row in context.question.rows}
    write_question(context.question, tmp_path, rates)
    write_replays(context, "loss", {"own_mode_grpo": 0.1})
    for name, by_seed in r7.overlap_files(context).items():
        for seed, path in by_seed.items():
            same = name.startswith("v_hack") and seed != 41
            write_json(tmp_path / path, OVERLAP | ({"overlap": 0.9995} if same else {}))
    assert all(Path(path).exists() for path in r7.needs(context))
    page = r7.make(context).page
    text = render((*page.answer, *page.blocks), "")
    assert "own_mode and own_mode_grpo differ on every replication" in text
    assert "v_hack_21pairs and v_hack_21pairs_grpo differ on 1 of 3 replications" in text
    assert "length weighting explains 100% of the difference" in text
    assert "`own_mode_grpo` met" in text
    assert {"own_mode", "own_mode and own_mode_grpo"} <= {source.name for source in page.sources}


def test_bases_that_differ_by_rounding_do_not_differ():
    one = OVERLAP | {"overlap": 0.99995, "hash_nll": "a", "hash_grpo": "b"}
    overlaps = {"nll and grpo": {41: one}}
    assert "nll and grpo do NOT differ on any replication" in " ".join(r7.differ_sentences(overlaps))
    assert "there is no difference to explain" in " ".join(r7.length_sentences(overlaps))
    shown = r7.overlap_grid(overlaps)
    row = dict(zip(shown.head, (cell.text for cell in shown.rows[0]), strict=True))
    assert (row["spans differ"], row["hashes differ"]) == ("0 of 1", "1 of 1")
