"""What single questions ask besides: mixes, controls, arms against each other, effects without early seeds."""

import re

import numpy as np
from scipy import stats as scipy_stats
from sentences import long
from synthetic import rate_of, real_questions, write_run

from projected_grpo.measures.table import make_table
from projected_grpo.pages import answers
from projected_grpo.pages.headline import finding, short
from projected_grpo.pages.markdown import render

_, QUESTIONS = real_questions(5)


def answer(table):
    """Return the answer as text."""
    return render(answers.answer(table), "")


def by_row(tmp_path, question, level):
    """Write runs whose hack rate is `level(row)` with some noise, and return their table."""
    for row in question.rows:
        for cell in row.cells:
            noise = np.random.default_rng([cell.seed, *cell.id.encode()]).normal(0, 0.004)
            write_run(tmp_path, cell, hack=level(row) + noise)
    return make_table(question, tmp_path)


def test_the_effect_at_one_mix_is_held_against_that_at_another(tmp_path):
    vanilla = {0.5: 0.6, 0.25: 0.6, 0.125: 0.8}
    lost = {("own_mode", 0.125): 0.3, ("own_mode", 0.5): 0.1, ("random", 0.125): 0.1, ("random", 0.5): 0.1}
    table = by_row(
        tmp_path,
        QUESTIONS["Q6"],
        lambda row: vanilla[row.setting.mix] - lost.get((row.setting.basis, row.setting.mix), 0.0),
    )
    rate = {
        (row.setting.basis, row.setting.mix): np.array([rate_of(tmp_path, cell.id) for cell in row.cells])
        for row in table.question.rows
    }
    own = [rate["own_mode", mix] - rate[None, mix] for mix in (0.125, 0.5)]
    low, high = scipy_stats.ttest_1samp(own[0] - own[1], 0).confidence_interval()
    gap = f"{(own[0] - own[1]).mean():+.3f} [{low:+.3f}, {high:+.3f}]"
    said = next(line for line in answer(table).splitlines() if line.startswith("- `own_mode`"))
    assert f"`own_mode` {own[0].mean():+.3f} [" in said and f"difference {gap}, Holm p < 0.001" in said
    assert finding(table).startswith(
        "Between mix 0.125 and 0.5 the effect on the hack rate is shown to differ for 1 of 2 bases (n = 5). "
    )
    assert f"`own_mode` {gap}" in finding(table) and not long(finding(table))


def test_controls_are_counted_beside_the_row_that_they_control(tmp_path):
    levels = {None: 0.8, "own_mode": 0.3, "within_class": 0.3, "shuffled": 0.5}
    table = by_row(tmp_path, QUESTIONS["Q7"], lambda row: levels.get(row.setting.basis, 0.8))
    first = finding(table)
    assert first.startswith("`own_mode` changes the hack rate by -0.4") and "(n = 5)" in first
    assert (
        "Shown to change it, too: 2 (`within_class`; and `shuffled labels`) of 4 controls; to differ from it: "
        "3 (`random V`; `clean_vs_clean`; and `shuffled labels`)." in first
    )
    text = answer(table)
    assert "`shuffled labels`: labels exchanged in half of the pairs keep the axes of the contrast" in text
    _, rows = text.split("The pairs of these rows are the teacher's own exploits")
    assert rows.split("\n\n")[1] == "- `own_mode`\n- `shuffled labels`"


def test_a_null_at_the_ceiling_says_little_of_content(tmp_path):
    table = by_row(tmp_path, QUESTIONS["Q2"], lambda row: 0.99 if row.setting.modes else 0.6)
    alone = table.line("own_mode frozen-V, run_tests").to_baseline["hack"].delta
    lines = [line for line in answer(table).splitlines() if "So near the ceiling" in line]
    assert len(lines) == 1 and lines[0].startswith("`vanilla, run_tests` hacks in ")
    assert f"there even `own_mode frozen-V, run_tests` (the teacher's own exploits) {alone:+.3f}" in lines[0]


def test_arms_against_each_other_stand_in_the_finding(tmp_path):
    table = by_row(tmp_path, QUESTIONS["Q4"], lambda row: 0.8 if row.setting.basis is None else 0.7)
    assert "Of 2 differences between arms none is shown (" in finding(table)
    levels = {None: 0.8, "own_mode": 0.7, "own_mode_meandiff": 0.4}
    other = by_row(tmp_path / "other", QUESTIONS["Q4"], lambda row: levels.get(row.setting.basis, 0.75))
    said = "Of 2 differences between arms 1 is shown, the largest `own_mode mean-diff k=1` against `own_mode SVD k=5`"
    assert said in finding(other) and said in short(other)
    assert "most `own_mode mean-diff k=1` (the teacher's own exploits) by -0.3" in finding(other)
    assert not long(finding(other)) and not long(short(other))


def test_effects_stand_once_more_without_the_seeds_of_early_trials(tmp_path):
    _, questions = real_questions(10)
    question = questions["Q4"]
    for row in question.rows:
        for cell in row.cells:
            own = row.setting.basis == "own_mode"
            noise = np.random.default_rng([cell.seed, *cell.id.encode()]).normal(0, 0.004)
            write_run(tmp_path, cell, hack=0.8 - own * (0.4 if cell.seed <= 45 else 0.1) + noise)
    text = answer(make_table(question, tmp_path))
    lead, rest = text.split("Without the seeds of early trials, 41-45 (n = 5).")
    assert (
        "1 of 1 shown effects keep their sign, 1 with a 95% interval that leaves out zero." in rest
        and re.search(r"- `own_mode SVD k=5` -0\.1\d\d \[", rest)
    )
    assert "The pairs of these rows are the teacher's own exploits, which no defender has beforehand:" in lead
    assert "Without the seeds" not in answer(by_row(tmp_path / "few", QUESTIONS["Q4"], lambda row: 0.5))
