"""What the answers and the first screen say of tables: changed rows, nulls, arms beside controls."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats
from sentences import long
from synthetic import fill, rate_of, real_questions, steps_frame, write_run

from projected_grpo.measures import stats
from projected_grpo.measures.columns import to_frame
from projected_grpo.measures.table import make_table
from projected_grpo.pages import answers
from projected_grpo.pages.blocks import Paragraph
from projected_grpo.pages.contrasts import against_random, with_bound
from projected_grpo.pages.headline import finding, overview, short
from projected_grpo.pages.markdown import render
from projected_grpo.pages.question import to_page

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
    assert "80% power" not in text and "smallest Holm p" in text, "no power without a pilot"
    for line in table.lines[1:]:
        pair = line.to_baseline["hack"]
        low = pair.delta - scipy_stats.t.ppf(0.95, 4) * pair.std / 5**0.5
        assert (
            f"`{line.name}` {pair.delta:+.3f} [" in text
            and f"; at most {-low:.3f} lower (one-sided 95%, unadjusted)" in text
        )
    assert "80% power" not in answer(make_table(question, tmp_path, {0.125: {"hack": 0.08}})), (
        "a pilot at another mix"
    )
    for cell in (question := QUESTIONS["Q7"]).cells:
        write_run(
            tmp_path, cell, hack=0.6 + np.random.default_rng([cell.seed, *cell.id.encode()]).normal(0, 0.04)
        )
    planned = make_table(question, tmp_path, {0.125: {"hack": 0.08}})
    assert f"finds {stats.detectable(0.08, 5):.3f} with 80% power at n = 5" in answer(planned)
    assert (
        overview(planned)[-1].text == f"{stats.detectable(0.08, 5):.3f}" and overview(table)[-1].text == "–"
    )


def test_a_null_within_the_margin_is_said_to_be_equivalent(tmp_path):
    question = QUESTIONS["Q4"]
    noise = {None: 0.0, "v_hack_full": 0.001, "v_hack_full_meandiff": 0.06}
    for cell in question.cells:
        drawn = np.random.default_rng([cell.seed, *cell.id.encode()]).normal(
            0, noise.get(cell.setting.basis, 0.002)
        )
        write_run(tmp_path, cell, hack=0.6 + drawn)
    table = make_table(question, tmp_path)
    text = answer(table)
    pairs = {line.name: line.to_baseline["hack"] for line in table.lines[1:]}
    adjusted = stats.holm([pair.p_same for pair in pairs.values()])
    for (name, pair), p in zip(pairs.items(), adjusted, strict=True):
        assert pair.same_holm == p
        said = next(line for line in text.splitlines() if line.startswith(f"- `{name}`"))
        assert ("equivalent within 0.050" in said) == (p < 0.05)
    assert [p < 0.05 for p in adjusted] == [True, False, True, True]
    assert "3 of them equivalent within 0.050" in short(table)


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
    assert text.startswith("A look, with n = 5: claims are made at 10 seeds. ")
    assert "6 of 6 arms lower the hack rate with the quarantine ablated. The strongest, `route own" in text
    assert "Beyond random axes: 6 of 6. These alone change it by -0." in text
    assert "It changes the solve rate with the quarantine ablated by " in text


def test_content_is_told_against_placebos_of_its_format(tmp_path):
    """Every set lowers hacking somewhat; only what lies outside its population is said to be content."""
    question = QUESTIONS["Q10"]
    levels = {row.setting.basis: 0.7 for row in question.rows}
    levels |= {f"placebo_code_{i:02d}": 0.5 + 0.02 * i for i in range(1, 11)}  # spread over 0.52 ... 0.70
    levels |= {f"placebo_text_{i:02d}": 0.66 + 0.05 * (i % 2) for i in range(1, 11)}
    write_levels(tmp_path, question, levels | {None: 0.75, "own_mode": 0.2, "prog_wide": 0.48, "moral": 0.45})
    table = make_table(question, tmp_path)
    text = answer(table)
    lower, rest = text.split("Not told apart from a pair set without a hack:")
    assert "- `own_mode` -0." in lower and "- `moral` -0." in lower and "rank 1 of 11" in lower
    assert "`prog_wide` -0.2" in rest and "`honesty_text`" in rest, (
        "it is lower than any, but within the spread"
    )
    assert re.search(r"Of the text placebos, seen differ from unseen: \+0\.0[45]", text)
    assert (
        "2 of 9 pair sets lower the hack rate more than placebos do: `own_mode` (the teacher's own exploits) -0."
        in short(table)
    )
    assert finding(table).startswith("2 of 9 pair sets") and finding(table).endswith("(n = 5).")
    assert "null_city" not in finding(table), "a placebo is no finding"
    assert not long(finding(table))


@pytest.mark.parametrize(("flipped", "stays", "turns"), [(0.60, True, False), (0.90, False, True)])
def test_what_the_gate_does_stays_when_v_is_flipped_and_content_turns(tmp_path, flipped, stays, turns):
    question = QUESTIONS["Q3"]
    for cell in question.cells:
        level = 0.75 if cell.setting.basis is None else 0.60
        level = flipped if cell.setting.knob("sign") == -1 else level
        noise = np.random.default_rng([cell.seed, *cell.id.encode()]).normal(0, 0.005)
        write_run(tmp_path, cell, hack=level + noise)
    table = make_table(question, tmp_path)
    text = answer(table)
    own, other, base = (
        np.array([rate_of(tmp_path, cell) for cell in table.line(name).cells])
        for name in ("own_mode one_sided", "own_mode one_sided flipped", "vanilla")
    )
    said = next(
        line for line in text.splitlines() if line.startswith("- `own_mode one_sided`") and "flipped" in line
    )
    halves = (own + other) / 2 - base, (own - other) / 2
    first = next(part for part in finding(table).split("With V flipped ") if part.startswith("`own_mode"))
    for word, half, shown in zip(("of its axes", "of its direction"), halves, (stays, turns), strict=True):
        low, high = scipy_stats.ttest_1samp(half, 0).confidence_interval()
        assert f"{word} {half.mean():+.3f} [{low:+.3f}, {high:+.3f}], Holm p " in said
        assert (abs(half.mean()) > 0.1) == shown
        assert ("not shown" in first.split(word[1:])[1].split(";")[0]) == (not shown)
    changes = (
        f"changes the hack rate by {(other - base).mean():+.3f} instead of {(own - base).mean():+.3f} (n = 5)"
    )
    assert changes in first
    assert first.strip().endswith(", not shown.") == stays, "random axes do as much as these on average"
    assert not long(finding(table))


def test_what_random_axes_lose_in_gradient_space_is_no_content(tmp_path):
    question = QUESTIONS["Q12"]
    for cell in question.cells:
        folder = write_run(tmp_path, cell)
        record = folder / "run.json"
        info, setting = json.loads(record.read_text()), cell.setting
        final = {"hack_kept": 0.6 + 0.01 * (cell.seed % 5), "solve_kept": 0.2, "solve_ablated": 0.2}
        noise = np.random.default_rng([cell.seed, *cell.id.encode()]).normal(0, 0.005)
        if setting.arm == "route":
            lost = 0.3 if setting.knob("space") == "gradient" else 0.0
            real = 0.1 if setting.basis == "own_mode" else 0.0
            final["hack_kept"] -= lost and lost + noise
            final["hack_ablated"] = 0.6 + 0.01 * (cell.seed % 5) - lost - real + noise
        else:
            final["hack_ablated"] = final["hack_kept"]
        record.write_text(json.dumps(info | {"final": final}))
    text = answer(make_table(question, tmp_path))
    said = next(
        line for line in text.splitlines() if line.startswith("- `own_mode`: gradient space kept -0.")
    )
    assert "update space kept equal to `none` in each of 5 seeds, ablated -0." in said
    assert re.search(r"\(n = 5\): what the space and that optimizer add\.\n\n- `own_mode` -0\.(29|30)", text)
    assert "in gradient space: so much of what a routed row does needs no content." in text
    said = finding(make_table(question, tmp_path))
    assert said.startswith(
        "Routing along random axes changes the hack rate with the quarantine ablated by -0."
    )
    assert re.search(r"in gradient space and by \S+ .* in update space \(n = 5\)\. ", said)
    assert re.search(r"real ones change it by -0\.(09|10)\d .*\(`own_mode`\); and [-+]0\.00", said)
    assert not long(said)


def test_tuning_seeds_make_no_claim(tmp_path):
    _, questions = real_questions([31, 32, 41])
    table = fill(tmp_path, questions["Q4"])
    page = to_page(table, {})
    banner = "Tuning seeds (31, 32): a choice, no claim."
    assert Paragraph(banner, kind="warn") in page.blocks and page.answer[0] == Paragraph(banner)
    assert short(table).startswith(banner)
    _, questions = real_questions(10)
    whole = to_page(fill(tmp_path / "ten", questions["Q4"]), {})
    assert not any(
        "no claim" in str(block) or "A look" in str(block) for block in (*whole.blocks, *whole.answer)
    )


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
        text[text.index("Arm against arm") :].split("Told apart (n = 5):")[1].split("No difference shown")[:2]
    )
    assert apart.strip().startswith("- `own_mode mean-diff k=1` against `own_mode SVD k=5` +0.")
    assert (
        "Holm p" in apart and "- `mean-diff k=1` against `SVD k=5`" in null and "; equivalent within" in null
    )


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
    assert "Told apart (n = 5):\n\n- `own_mode solve-orth m=4` against `own_mode (no orth)` +0." in text
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


def test_rows_with_fewer_axes_than_their_random_ones_are_named(tmp_path):
    table = fill(tmp_path, QUESTIONS["Q3"])
    for cell in table.line("one_sided").row.cells:
        path = tmp_path / "grpo" / cell.id / "steps.parquet"
        pd.read_parquet(path).assign(cin_null=0.15).to_parquet(path)
    _, cut = answer(make_table(table.question, tmp_path)).split("Their bases are cut:")
    named, random = cut.split("\n\n")[1], table.line("random V one_sided").summary["cin_null"].mean
    assert named == f"- `one_sided` {0.15 / random:.0%}", "own_mode has no noise floor"


def test_a_bound_is_said_on_the_side_that_it_leaves_open():
    both = stats.adjust(
        [stats.one_sample(dict(enumerate(values))) for values in ([0.2, 0.3, 0.5], [-0.1, 0.4, 0.1])]
    )
    above, open_ = both
    assert (
        above.least > 0
        and with_bound(above) == f"at most {above.most:.3f} higher (one-sided 95%, unadjusted)"
    )
    assert open_.least < 0 < open_.most
    assert with_bound(open_) == f"at most {-open_.least:.3f} lower (one-sided 95%, unadjusted)"
    assert with_bound(open_, above=True) == f"at most {open_.most:.3f} higher (one-sided 95%, unadjusted)"
