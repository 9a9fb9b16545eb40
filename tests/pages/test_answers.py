"""What the answers and the first screen say of tables: changed rows, nulls, arms beside controls."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats
from synthetic import fill, rate_of, real_questions, steps_frame, write_run

from projected_grpo.measures import stats
from projected_grpo.measures.columns import to_frame
from projected_grpo.measures.table import make_table
from projected_grpo.pages import answers
from projected_grpo.pages.contrasts import against_random
from projected_grpo.pages.headline import overview, short
from projected_grpo.pages.markdown import render

_, QUESTIONS = real_questions(5)


def answer(table):
    """Return the answer as text."""
    return render(answers.answer(table), "")


def test_null_answer_says_what_could_have_been_seen(tmp_path):
    question = QUESTIONS["Q4"]
    for cell in question.cells:
        write_run(
            tmp_path, cell, hack=0.6 + np.random.default_rng([cell.seed, *cell.id.encode()]).normal(0, 0.04)
        )
    table = make_table(question, tmp_path)
    text = answer(table)
    assert text.startswith("No effect on the hack rate is shown: none of 4 rows")
    assert "80% power" in text and "smallest Holm p" in text
    worst = max(line.to_baseline["hack"].detectable for line in table.lines if line.row.baseline)
    assert f"{worst:.3f}" in text


def test_the_untrained_model_stands_beside_the_answer(tmp_path):
    table = fill(tmp_path, QUESTIONS["Q12"])
    first = [pd.read_parquet(path).iloc[0] for path in tmp_path.glob("grpo/*/steps.parquet")]
    hack, solve = (np.mean([row[name] for row in first]) for name in ("hack_s", "solve_s"))
    said = f"(first step of these runs, n = 5) they had a hack rate of {hack:.3f} and a solve rate of {solve:.3f}"
    assert said in answer(table) and said in short(table)
    assert "start_hack" in to_frame(table)


def test_the_first_screen_counts_no_control_as_an_arm(tmp_path):
    question = QUESTIONS["Q12"]
    levels = {None: 0.75, "own_mode": 0.45, "v_hack_21pairs": 0.6, "random": 0.65}
    write_levels(tmp_path, question, levels)
    text = short(make_table(question, tmp_path))
    assert text.startswith(
        "4 of 4 arms lower the hack rate with the quarantine ablated. The strongest, `route own"
    )
    assert "Beyond random axes (`route random V` -0." in text and "): 2 of 2" in text
    assert "It changes the solve rate with the quarantine ablated by " in text


def test_the_first_screen_holds_pair_sets_against_the_placebo(tmp_path):
    question = QUESTIONS["Q10"]
    levels = {row.setting.basis: 0.7 for row in question.rows}
    write_levels(tmp_path, question, levels | {None: 0.75, "own_mode": 0.2, "null_city": 0.45})
    table = make_table(question, tmp_path)
    told = [line.to_against["hack"].holm for line in table.lines if line.row.against == "null_city (placebo)"]
    lower = [line.name for line in table.lines if line.to_against and line.to_against["hack"].delta < 0]
    assert len(told) == 10 and lower == ["own_mode"] and table.line("own_mode").to_against["hack"].holm < 0.05
    text = short(table)
    assert text.startswith("10 of 10 arms lower the hack rate")
    assert "Lower than `null_city (placebo)` (-0." in text and "): 1 of 10" in text


def test_q2_says_whether_the_preregistered_mark_is_met(tmp_path):
    question = QUESTIONS["Q2"]
    for cell in question.cells:
        arm = {None: 0.75, "own_mode": 0.40, "v_hack_21pairs": 0.60, "random": 0.30}[cell.setting.basis]
        write_run(tmp_path, cell, hack=arm + 0.01 * (cell.seed % 3))
    text = answer(make_table(question, tmp_path))
    assert "`own_mode frozen-V` met (hack -0.350" in text
    assert "`projected frozen-V` not met (hack -0.150" in text
    assert "`random V` met" not in text, "a control is no arm that a mark was set for"


def write_levels(results, question, levels, spread=0.005):
    """Write runs whose hack rate is that of their basis in `levels`, with noise by cell."""
    for cell in question.cells:
        noise = np.random.default_rng([cell.seed, *cell.id.encode()]).normal(0, spread)
        write_run(results, cell, hack=levels[cell.setting.basis] + noise)


def test_an_effect_is_beyond_random_v_only_in_its_own_direction(tmp_path):
    question = QUESTIONS["Q7"]
    levels = {None: 0.75, "own_mode": 0.35, "random": 0.45, "clean_vs_clean": 0.65, "within_class": 0.45}
    write_levels(tmp_path, question, levels | {"shuffled": 0.85})
    table = make_table(question, tmp_path)
    told = {line.name: says for line, says in against_random(table)}
    text = answer(table)
    text = text[text.index("Against a random V") : text.index("Arm against arm")]
    assert text.index("`own_mode`") < text.index("- `within_class`")
    pairs = [line.to_random["hack"] for line in table.lines if line.to_random]
    assert [pair.holm for pair in pairs] == stats.holm([pair.p for pair in pairs])
    assert told["own_mode"] == "beyond it"  # lowers by 0.40, random V by 0.30
    assert told["clean_vs_clean"] == "less than it"  # lowers by 0.10
    assert told["within_class"] == "not told apart from it"
    assert told["shuffled labels"] == "beyond it"  # raises, where random V lowers


def test_arms_that_differ_are_told_apart_and_others_are_nulls(tmp_path):
    question = QUESTIONS["Q4"]
    levels = {None: 0.75, "v_hack_full": 0.60, "v_hack_full_meandiff": 0.60}
    write_levels(tmp_path, question, levels | {"own_mode": 0.30, "own_mode_meandiff": 0.50})
    text = answer(make_table(question, tmp_path))
    apart, null = (
        text[text.index("Arm against arm") :].split("Told apart:")[1].split("No difference shown")[:2]
    )
    assert apart.strip().startswith("- `own_mode mean-diff k=1` against `own_mode SVD k=5` +0.")
    assert "Holm p" in apart and "- `mean-diff k=1` against `SVD k=5`" in null and "with 80% power" in null


def test_q9_answers_on_the_solve_rate(tmp_path):
    question = QUESTIONS["Q9"]
    for cell in question.cells:
        noise = np.random.default_rng([cell.seed, *cell.id.encode()]).normal(0, 0.005)
        folder = write_run(tmp_path, cell, hack=0.5)
        frame = pd.read_parquet(folder / "steps.parquet")
        spared = cell.setting.basis in (None, "own_mode_orth4")
        frame.assign(solve_s=(0.5 if spared else 0.3) + noise).to_parquet(folder / "steps.parquet")
    table = make_table(question, tmp_path)
    assert table.primary == "solve" and overview(table)[0].small == "the solve rate"
    text = answer(table)
    assert "Lower the solve rate against its baseline" in text
    assert "Told apart:\n\n- `own_mode solve-orth m=4` against `own_mode (no orth)` +0." in text
    assert (
        "- `18-pair solve-orth m=4` against `18-pair base (no orth)`" in text[text.index("No difference") :]
    )


def test_one_seed_of_two_arms_is_no_test(tmp_path):
    _, questions = real_questions([41])
    text = answer(fill(tmp_path, questions["Q4"]))
    assert "Not testable (one seed" in text and "`mean-diff k=1` against `SVD k=5`" in text
    assert "Told apart" not in text and "No difference shown" not in text


def test_q14_marks_uninformative_folds(tmp_path):
    question = QUESTIONS["Q14"]
    for cell in question.cells:
        folder = write_run(tmp_path, cell)
        if cell.setting.held_out_mode == "sentinel":
            frame = pd.read_parquet(folder / "steps.parquet")
            frame["hack_sentinel"] = 0.02 + 0.001 * (cell.seed % 3)
            frame.to_parquet(folder / "steps.parquet")
    table = make_table(question, tmp_path)
    text = answer(table)
    assert "Uninformative fold `sentinel`" in text and "Uninformative fold `run_tests`" not in text
    assert "known modes without sentinel" not in text
    assert "`run_tests` in 5 of 5; `sentinel` in 0 of 5" in text
    frame = to_frame(table).set_index("row")
    row = frame.loc["known modes without run_tests"]
    ours = np.mean([rate_of(tmp_path, cell, "hack_run_tests") for cell in row["cells"]])
    base = np.mean(
        [rate_of(tmp_path, f"vanilla-no_run_tests-m0.125-s{s}", "hack_run_tests") for s in range(41, 46)]
    )
    assert row["hack_heldout"] == pytest.approx(ours)
    assert row["delta_hack_heldout"] == pytest.approx(ours - base)


def test_an_arm_that_breaks_the_code_is_told_so(tmp_path):
    question = QUESTIONS["Q4"]
    for cell in question.cells:
        folder = write_run(tmp_path, cell)
        frame = steps_frame(cell, 0.5)
        if cell.setting.basis == "own_mode":
            frame["compile_s"] -= 0.6
        frame.to_parquet(folder / "steps.parquet")
    table = make_table(question, tmp_path)
    text = answer(table)
    said = text[text.index("The share of rollouts that compile differs from the baseline's:\n\n") :].split(
        "\n\n"
    )[1]
    assert said.startswith("- `own_mode SVD k=5` 0.2") and "\n" not in said
    row = to_frame(table).set_index("row").loc["own_mode SVD k=5"]
    ours, base = (
        [rate_of(tmp_path, c, "compile_s") for c in line.cells]
        for line in (table.line(row.name), table.line("vanilla"))
    )
    assert row["compile"] == pytest.approx(np.mean(ours))
    assert row["p_compile"] == pytest.approx(scipy_stats.ttest_rel(ours, base).pvalue)


def test_mixes_with_another_group_size_are_named(tmp_path):
    said = "The group size follows the mix (8 at 0, 0.125; 4 at 0.25, 0.5)"
    assert said in answer(fill(tmp_path, QUESTIONS["Q1"]))
    assert "group size" not in answer(fill(tmp_path, QUESTIONS["Q4"]))
