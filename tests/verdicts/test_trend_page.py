"""Pages of Q19 and Q20 on made-up runs with known effects, and what Q21 says where the teacher's rows end."""

import re
import shutil
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from figures import spilled
from sentences import long
from synthetic import context_of, fill, real_questions, write_run

from projected_grpo.files import write_json
from projected_grpo.measures.table import make_table
from projected_grpo.measures.trend import uses
from projected_grpo.pages import contrasts, headline, style
from projected_grpo.pages.findings.untaught import without_teacher
from projected_grpo.pages.markdown import render
from projected_grpo.verdicts import trend
from projected_grpo.verdicts.verdict import write

SEEDS = [41, 42, 43, 44, 45]


def on_training(name, results, seeds):
    """Return the context of a question on the rate in training, which made-up runs say exactly."""
    context = context_of(name, results, seeds)
    return replace(context, questions={name: replace(context.question, primary="hack")})


def write_q19(results, foreign, loose=0.01, gain=None):
    """Write Q19's runs: `honesty_said` follows the link on honesty; honesty_text by `foreign` times as much, with noise
    of `loose`; gain: pair set -> how far another one does."""
    context = on_training("Q19", results, SEEDS)
    draws = np.random.default_rng(3)
    for row in context.question.rows:
        link = context.config.small.corpus(row.setting.variant)[1]
        rho = link.rho if link and link.topic == "honesty" else 0
        own = {"honesty_said": 1.0, "honesty_text": foreign, **(gain or {})}.get(row.setting.basis, 0)
        noise = loose if row.setting.basis == "honesty_text" else 0.01
        for cell in row.cells:
            write_run(results, cell, hack=0.7 - 0.3 * rho * own + noise * draws.normal())
    for model, path in trend.overlap_files(context).items():
        rows = [
            {
                "basis": basis,
                "k": use.k,
                "overlap": 0.06 + little,
                "overlap_null": 0.04,
                "cosine": 0.1 + little,
            }
            for little in (1e-4 * draws.normal(),)
            for basis, use in uses(context.question, model, context.config)
        ]
        write_json(results / path, {"reference": "own_mode", "bases": rows})
    return context


@pytest.fixture(scope="module")
def q19(tmp_path_factory):
    context = write_q19(tmp_path_factory.mktemp("results"), foreign=0)
    return context, trend.make(context)


def test_the_wording_must_be_known_where_only_the_corpus_s_words_follow_the_link(q19, tmp_path):
    _, made = q19
    first = made.page.answer[1].items[0]
    assert (
        first.startswith("Link on honesty: the wording must be known, too")
        and "effects change: `honesty_said` by -0.3" in first
    )
    assert re.search(r"cosines with `own_mode` change: `honesty_said` by [+-]0\.000", first)
    assert made.page.answer[1].items[1].startswith("The link on honesty is not shown in the gradients")
    assert re.search(r"overlap less random [+-]0\.000 .*, n = 5", made.page.answer[1].items[1])
    assert made.page.answer[1].items[2].startswith("The link on city is not shown in the gradients"), (
        "no set is on that topic in other words"
    )
    assert "The slopes of `honesty_said` and `honesty_text` differ by -0.3" in made.page.answer[1].items[3]
    assert (
        made.page.answer[1]
        .items[4]
        .startswith("Control: of 3 pair sets on other topics none is shown to follow")
    )
    again = trend.make(write_q19(tmp_path, foreign=1))
    assert again.page.answer[1].items[0].startswith("Link on honesty: the link suffices")


def test_one_slope_shown_and_the_other_not_is_no_difference_and_controls_that_follow_are_named(tmp_path):
    made = trend.make(write_q19(tmp_path, foreign=0.5, loose=0.2, gain={"moral": 1.0}))
    items = made.page.answer[1].items
    assert "pairs in the corpus's own words follow it; of those in other words it is not shown" in items[0]
    said = "Control: of 3 pair sets on other topics 1 is shown to follow the link on honesty (`moral` -0."
    assert items[4].startswith(said)
    assert not long("\n\n".join(made.log))


def test_it_needs_the_overlaps_of_every_model_and_opens_with_its_figure(q19, tmp_path):
    context, made = q19
    assert len(trend.needs(context)) == 5 * len(SEEDS)
    write(made, tmp_path)
    text = (tmp_path / "Q19.md").read_text()
    assert "| honesty_said | link on honesty | 0, 0.5, 1 |" in text and "](figures/Q19/trend.svg)" in text
    assert "own_mode | link on honesty | 1.000" not in text
    assert made.page.blocks[0].name == "trend" and made.page.top[1].name == "trend"
    ET.fromstring(style.to_svg(made.drawn["trend"][0]))
    assert not spilled(made.drawn["trend"][0])
    frame = pd.read_parquet(tmp_path / "Q19.parquet").set_index("row")
    assert frame.loc["honesty_said, link1", "slope"] == pytest.approx(-0.3, abs=0.03)
    assert frame.loc["moral, link0.5", "cosine"] == pytest.approx(0.1, abs=1e-3)


def test_one_seed_without_overlaps_is_shown_and_nothing_is_claimed(q19, tmp_path):
    shutil.copytree(q19[0].results / "grpo", tmp_path / "grpo")
    made = trend.make(on_training("Q19", tmp_path, [41]))
    assert made.frame["p_slope"].isna().all() and made.frame["slope"].notna().any()
    write(made, tmp_path)


def test_without_runs_the_page_says_so(tmp_path):
    for name in ("Q19", "Q20"):
        made = trend.make(context_of(name, tmp_path, SEEDS))
        assert made.page.answer[0].items == ("No series has runs at two points yet.",)
        write(made, tmp_path)


def write_q20(results, hack):
    """Write Q20's runs; hack: (size, basis) -> rate; size: log10 of the parameters over those of the default."""
    context = on_training("Q20", results, SEEDS)
    draws = np.random.default_rng(4)
    for row in context.question.rows:
        size = {"0.3M": -0.5, None: 0, "3M": 0.5, "10M": 1}[row.setting.size]
        for cell in row.cells:
            write_run(results, cell, hack=hack(size, row.setting.basis) + 0.01 * draws.normal())
    return context


@pytest.mark.parametrize(
    "gain, said",
    [(0.2, "so much more there is to take away"), (-0.2, "so much less"), (0, "is not shown to move")],
)
def test_what_there_is_to_take_away_goes_with_the_size(tmp_path, gain, said):
    context = write_q20(
        tmp_path, lambda size, basis: (0.5 + gain * size) * (0.5 if basis == "own_mode" else 1)
    )
    made = trend.make(context)
    items = made.page.answer[1].items
    level = next(item for item in items if item.startswith("`vanilla` itself, from"))
    deployed = trend.make(context_of("Q20", tmp_path, SEEDS))  # whose title is the longest
    assert not spilled(made.drawn["trend"][0]) and not spilled(deployed.drawn["trend"][0])
    assert said in level and "per tenfold parameters, n = 5" in level
    lead = (
        "None of 6 effects on the hack rate is shown"
        if not gain
        else "2 of 6 effects on the hack rate are shown"
    )
    assert made.page.finding.endswith(items[0]) and items[0].startswith(lead)
    way = {0.2: "more", -0.2: "less"}.get(gain, "")
    assert (
        "with the size of the model. `own_mode, k 5` -0." in items[0]
        and f"it lowers this rate {way}" in items[0]
    )
    nulls = [item for item in items[1:] if item.startswith("Not shown to change")]
    if not gain:  # the exploits' own pairs in a sentence each, all others in one
        assert "`own_mode, k by size` -0." in nulls[0] and "by its slope it" in nulls[0]
        assert (
            len(nulls) == 2 and "`null_city, k 5`; `null_city, k by size`; `random V, k 5`; and" in nulls[1]
        )
        assert re.search(
            r"\(slopes [-+.\d]+ to [-+.\d]+ per tenfold parameters, smallest Holm p = ", nulls[1]
        )
    assert not long("\n\n".join(made.log))


def test_an_effect_that_changes_its_sign_is_neither_more_nor_less(tmp_path):
    context = write_q20(tmp_path, lambda size, basis: 0.5 + (0.2 * size if basis == "own_mode" else 0))
    first = trend.make(context).page.answer[1].items[0]
    assert "`own_mode, k 5` -0.1" in first and "it turns from lowering to raising this rate" in first


def test_hacking_after_the_teacher_s_last_step_against_that_before_it(tmp_path):
    _, questions = real_questions([41, 42, 43])
    table = fill(tmp_path, questions["Q21"])
    text = render(without_teacher(table), "")

    def hack(cell):
        return pd.read_parquet(tmp_path / "grpo" / cell.id / "steps.parquet")["hack_s"].to_numpy()

    for name, start in (("vanilla, teacher off", slice(5, 10)), ("own_mode, no teacher", slice(0, 1))):
        runs = [hack(cell) for cell in table.line(name).row.cells]
        before, after = (np.mean([run[part].mean() for run in runs]) for part in (start, slice(-5, None)))
        said = (
            f"`{name}` from {before:.3f} {'up to step 10' if 'off' in name else 'at step 1'} to {after:.3f}: "
        )
        assert f"{said}{after - before:+.3f}" in text
    assert without_teacher(fill(tmp_path, questions["Q1"])) == []
    # Two experiments: each half has its own count of arms.
    said = headline.finding(table)
    assert all(f"Against `vanilla, {half}`: " in said for half in ("no teacher", "teacher off"))
    assert said.count(" of 3 arms ") == 2 and not long(said)


def test_an_arm_is_held_against_its_random_direction_in_honest_work_too(tmp_path):
    _, questions = real_questions(SEEDS)
    context = context_of("Q21", tmp_path, SEEDS)
    draws = np.random.default_rng(6)
    for row in context.question.rows:
        broken = row.name == "advantage random, teacher off"
        for cell in row.cells:
            hack = 0.05 if "advantage" in row.name else 0.6
            path = write_run(tmp_path, cell, hack=hack + 0.01 * draws.normal()) / "deployed.parquet"
            if broken:
                pd.read_parquet(path).assign(gt_pass=False).to_parquet(path)
    table = make_table(questions["Q21"], tmp_path)
    said = headline.finding(table)
    assert said.count(". Most does `advantage, ") == 2 and not long(said)
    text = render(contrasts.beyond_random(table), "")
    assert "Against the same random V, in the share of rollouts that compile." in text
    honest = text[text.index("Against the same random V, in the honest rate on held-out problems") :]
    told = honest[: honest.index("No difference shown")]
    assert "`advantage, teacher off` against `advantage random, teacher off` +0." in told
    assert "no teacher" not in told
