"""Tables against a brute-force recomputation from the run folders, and what bad folders do."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats
from snakemake.utils import update_config
from synthetic import MODES, real_questions, steps_frame, write_run

from projected_grpo.analysis.answers import answer
from projected_grpo.analysis.markdown import to_markdown
from projected_grpo.analysis.table import PUBLISHED, TESTS, make_table, published_rows, to_frame
from projected_grpo.errors import UserError

_, QUESTIONS = real_questions(5)


def fill(results, question, skip=()):
    for cell in question.cells:
        if cell.id not in skip:
            write_run(results, cell)
    return make_table(question, results)


@pytest.fixture(scope="module")
def q10(tmp_path_factory):
    results = tmp_path_factory.mktemp("results")
    return results, fill(results, QUESTIONS["Q10"])


def rate_of(results, cell, column="hack_s"):
    frame = pd.read_parquet(results / "grpo" / cell / "steps.parquet")
    return frame.sort_values("step")[column].tail(5).mean()


def test_table_matches_brute_force(q10):
    results, table = q10
    frame = to_frame(table).set_index("row")
    vanilla = [f"vanilla-m0.125-s{s}" for s in range(41, 46)]
    ps = {}
    for row in frame.index:
        cells = list(frame.loc[row, "cells"])
        hack = np.array([rate_of(results, cell) for cell in cells])
        solve = np.array([rate_of(results, cell, "solve_s") for cell in cells])
        assert [f"s{s}" for s in frame.loc[row, "seeds"].split(";")] == [c.split("-")[-1] for c in cells]
        assert frame.loc[row, "hack"] == pytest.approx(hack.mean())
        assert frame.loc[row, "hack_std"] == pytest.approx(hack.std(ddof=1))
        assert frame.loc[row, "solve"] == pytest.approx(solve.mean())
        assert frame.loc[row, "exploit"] == pytest.approx(
            np.mean([rate_of(results, c, "exploit_s") for c in cells])
        )
        if row == "vanilla":
            assert math.isnan(frame.loc[row, "delta_hack"])
            continue
        test = scipy_stats.ttest_rel(hack, [rate_of(results, cell) for cell in vanilla])
        low, high = test.confidence_interval(0.95)
        seen = frame.loc[row, ["delta_hack_lo", "delta_hack_hi", "p_hack"]].tolist()
        assert seen == pytest.approx([low, high, test.pvalue])
        ps[row] = test.pvalue
    ranked = sorted(ps, key=ps.get)
    running = 0
    for rank, row in enumerate(ranked):
        running = max(running, min(1, (len(ranked) - rank) * ps[row]))
        assert frame.loc[row, "p_hack_holm"] == pytest.approx(running)


def test_parquet_columns_and_types(q10, tmp_path):
    _, table = q10
    to_frame(table).to_parquet(tmp_path / "Q10.parquet")
    frame = pd.read_parquet(tmp_path / "Q10.parquet")
    first = [*PUBLISHED, *TESTS, "hack_published", "solve_published", "delta_hack_published", "cells"]
    assert list(frame.columns[: len(first)]) == first
    assert list(published_rows().columns) == PUBLISHED
    vanilla = frame.iloc[0]
    assert vanilla[["basis", "gate", "refresh", "baseline"]].isna().all()
    assert vanilla["seeds"] == "41;42;43;44;45" and vanilla["n"] == 5
    paper = frame.set_index("row").loc["prog_wide"]
    assert (paper["hack_published"], paper["delta_hack_published"]) == (0.500, -0.226)
    assert math.isnan(frame.set_index("row").loc["own_mode", "hack_published"])


def test_published_figures_are_the_papers():
    from pathlib import Path

    reference = Path(__file__).resolve().parents[1].parent / "shared/reference/published.csv"
    if not reference.exists():
        pytest.skip("no shared reference")
    pd.testing.assert_frame_equal(published_rows(), pd.read_csv(reference, dtype={"seeds": str}))


def test_markdown_ends_with_published_sources_and_answer(q10):
    _, table = q10
    page = to_markdown(table)
    assert (
        page.index("| row |")
        < page.index("published figures")
        < page.index("<!-- sources")
        < page.index("**Answer.**")
    )
    assert page.rstrip().endswith(answer(table))
    assert "erase-null_city-m0.125-s45" in page
    assert "Lowers the hack rate" in page and "`own_mode` -0." in page
    assert "nan" not in page.lower().replace("finance", "")


def test_null_answer_says_what_could_have_been_seen(tmp_path):
    question = QUESTIONS["Q4"]
    for cell in question.cells:
        write_run(
            tmp_path, cell, hack=0.6 + np.random.default_rng([cell.seed, *cell.id.encode()]).normal(0, 0.04)
        )
    table = make_table(question, tmp_path)
    text = answer(table)
    assert text.startswith("No effect on the hack rate: none of 4 rows")
    assert "80% power" in text and "smallest Holm p" in text
    worst = max(line.against["hack"].detectable for line in table.lines if line.row.baseline)
    assert f"{worst:.3f}" in text


def test_missing_and_short_runs_are_named_and_the_rest_printed(tmp_path):
    question = QUESTIONS["Q2"]
    missing = "erase-own_mode-m0.5-s43"
    table = fill(tmp_path, question, skip=(missing,))
    short = tmp_path / "grpo/vanilla-m0.5-s41/steps.parquet"
    pd.read_parquet(short).iloc[:12].to_parquet(short)
    table = make_table(question, tmp_path)
    assert table.left_out == {"vanilla-m0.5-s41": "12 of 20 steps", missing: "missing"}
    frame = to_frame(table).set_index("row")
    assert frame.loc["vanilla", "seeds"] == "42;43;44;45"
    own = table.line("own_mode frozen-V")
    assert own.seeds == (41, 42, 44, 45) and own.against["hack"].seeds == (42, 44, 45)
    page = to_markdown(table)
    assert f"`{missing}` (missing)" in page and "`vanilla-m0.5-s41` (12 of 20 steps)" in page


def test_nothing_there_is_still_a_page(tmp_path):
    table = make_table(QUESTIONS["Q2"], tmp_path)
    frame = to_frame(table)
    assert (frame["n"] == 0).all() and frame["hack"].isna().all()
    assert "their runs are missing" in to_markdown(table)


def test_one_seed_prints_no_std_and_no_test(tmp_path):
    _, questions = real_questions([41])
    table = fill(tmp_path, questions["Q2"])
    frame = to_frame(table)
    for column in ("hack_std", "solve_std", "delta_hack_std", "p_hack", "p_hack_holm", "delta_hack_lo"):
        assert frame[column].isna().all()
    assert frame["delta_hack"].notna().sum() == 4
    assert "One seed" in answer(table)
    assert "(0." not in to_markdown(table).split("**Answer")[0].split("Beside")[0]


def damage(change):
    def write(path):
        frame = pd.read_parquet(path)
        change(frame).to_parquet(path)

    return write


BROKEN = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:400]),
    "empty file": lambda path: path.write_bytes(b""),
    "no hack_s": damage(lambda f: f.drop(columns="hack_s")),
    "NaN in hack_s": damage(lambda f: f.assign(hack_s=f["hack_s"].where(f["step"] != 7))),
    "NaN in one solve_s": damage(lambda f: f.assign(solve_s=f["solve_s"].where(f["step"] != 7))),
    "rate above one": damage(lambda f: f.assign(hack_s=f["hack_s"] + 0.9)),
    "repeated step": damage(lambda f: pd.concat([f.iloc[:19], f.iloc[[3]]])),
    "step cut out": damage(lambda f: f[f["step"] != 7]),
    "too many steps": damage(lambda f: pd.concat([f, f.tail(1).assign(step=21)])),
    "text in hack_s": damage(lambda f: f.assign(hack_s=f["hack_s"].astype(str))),
    "no fired": damage(lambda f: f.drop(columns="fired")),
    "text in cin": damage(lambda f: f.assign(cin=f["cin"].astype(str))),
    "NaN in cin": damage(lambda f: hole(f, "cin")),
    "NaN in cout": damage(lambda f: hole(f, "cout")),
    "NaN in cout_update": damage(lambda f: hole(f, "cout_update")),
    "NaN in cin_s and cin_t": damage(lambda f: hole(f, "cin_s", "cin_t")),
    "NaN in cin_null": damage(lambda f: hole(f, "cin_null")),
    "NaN in fired": damage(lambda f: hole(f, "fired")),
    "NaN in delta_norm": damage(lambda f: hole(f, "delta_norm")),
    "NaN in ratio_mean": damage(lambda f: hole(f, "ratio_mean")),
    "NaN in every loophole": damage(lambda f: hole(f, *(n for n in f if n in MODE_COLUMNS))),
    "loophole's rate above one": damage(lambda f: f.assign(hack_sentinel=1.2)),
    "cin below zero": damage(lambda f: f.assign(cin=-0.1)),
    "cout above one": damage(lambda f: f.assign(cout=1.4)),
    "infinite norm": damage(lambda f: f.assign(delta_norm=np.inf)),
    "overlap without a refresh": damage(lambda f: hole(f.assign(basis_overlap=2.0), "basis_overlap")),
    "no ratio_hist": damage(lambda f: f.assign(ratio_hist=[None] * len(f))),
}
MODE_COLUMNS = {f"hack_{mode}" for mode in MODES}


def hole(frame, *columns, step=7):
    return frame.assign(**{column: frame[column].where(frame["step"] != step) for column in columns})


@pytest.mark.parametrize("kind", BROKEN)
def test_damaged_parquet_is_an_error_with_its_path(kind, tmp_path):
    question = QUESTIONS["Q4"]
    fill(tmp_path, question)
    path = tmp_path / "grpo/erase-v_hack_full-m0.5-s42/steps.parquet"
    BROKEN[kind](path)
    with pytest.raises(UserError, match=r"erase-v_hack_full-m0\.5-s42/steps\.parquet") as error:
        make_table(question, tmp_path)
    assert "\n" not in str(error.value)


def test_a_refreshing_run_says_its_overlap_at_every_refresh(tmp_path):
    question = QUESTIONS["Q2"]
    fill(tmp_path, question)
    path = tmp_path / "grpo/erase-own_mode-refresh2-m0.5-s42/steps.parquet"
    damage(lambda f: hole(f, "basis_overlap", step=8))(path)
    with pytest.raises(UserError, match=r"refresh2-m0\.5-s42/steps\.parquet: column 'basis_overlap'.*step 8"):
        make_table(question, tmp_path)


def test_nulls_that_a_run_writes_are_no_damage(tmp_path):
    question = QUESTIONS["Q4"]
    fill(tmp_path, question)
    path = tmp_path / "grpo/erase-v_hack_full-m0.5-s42/steps.parquet"
    gradient = ("cin", "cin_s", "cin_t", "cout", "cout_update")
    damage(lambda f: hole(f, *gradient, step=1))(path)  # every group's rewards equal
    damage(lambda f: hole(f, "cin_t", step=2))(path)  # the teacher's groups alone
    damage(lambda f: hole(f, "hack_sentinel", step=3))(path)  # no prompt of that loophole
    damage(lambda f: hole(f, "ratio_mean", "ratio_clip_low", "ratio_clip_high", step=4))(path)
    assert make_table(question, tmp_path).left_out == {}


def test_a_run_without_its_record_does_not_count(tmp_path):
    question = QUESTIONS["Q4"]
    fill(tmp_path, question)
    (tmp_path / "grpo/vanilla-m0.5-s42/run.json").unlink()
    table = make_table(question, tmp_path)
    assert table.left_out == {"vanilla-m0.5-s42": "no run.json"}
    assert table.line("vanilla").seeds == (41, 43, 44, 45)


@pytest.mark.parametrize(
    "change, said",
    [
        ({"cell": "vanilla-m0.5-s43"}, "cell is 'vanilla-m0.5-s43'"),
        ({"settings": None}, "settings"),
        ({"settings": {"grpo": {"lr": 0.5}}}, "settings.grpo.lr is 0.5, the config says 0.12"),
        ({"settings": {"seed": 43}}, "settings.seed is 43, the config says 42"),
        ({"final": {"hack_kept": "0.5"}}, "final.hack_kept is '0.5'"),
    ],
)
def test_a_run_of_other_settings_is_an_error_with_its_path(tmp_path, change, said):
    question = QUESTIONS["Q4"]
    fill(tmp_path, question)
    path = tmp_path / "grpo/vanilla-m0.5-s42/run.json"
    info = json.loads(path.read_text())
    update_config(info, change)
    path.write_text(json.dumps(info))
    with pytest.raises(UserError) as error:
        make_table(question, tmp_path)
    assert str(error.value).startswith(f"{path}: ") and said in str(error.value)


def test_damaged_run_json_is_an_error(tmp_path):
    question = QUESTIONS["Q12"]
    fill(tmp_path, question)
    path = tmp_path / "grpo/vanilla-final-m0.5-s42/run.json"
    path.write_text(path.read_text()[:50])
    with pytest.raises(UserError, match=r"vanilla-final-m0\.5-s42/run\.json"):
        make_table(question, tmp_path)


def test_q2_says_whether_the_preregistered_mark_is_met(tmp_path):
    question = QUESTIONS["Q2"]
    for cell in question.cells:
        arm = {None: 0.75, "own_mode": 0.40, "v_hack_21pairs": 0.60}[cell.setting.basis]
        write_run(tmp_path, cell, hack=arm + 0.01 * (cell.seed % 3))
    text = answer(make_table(question, tmp_path))
    assert "`own_mode frozen-V` met (hack -0.350" in text
    assert "`projected frozen-V` not met (hack -0.150" in text


def test_q12_compares_the_ablated_rates(tmp_path):
    table = fill(tmp_path, QUESTIONS["Q12"])
    frame = to_frame(table).set_index("row")
    final = {
        cell: json.loads((tmp_path / "grpo" / cell / "run.json").read_text())["final"]
        for row in ("route own_mode", "none")
        for cell in frame.loc[row, "cells"]
    }
    route = [final[cell]["hack_ablated"] for cell in frame.loc["route own_mode", "cells"]]
    none = [final[cell]["hack_ablated"] for cell in frame.loc["none", "cells"]]
    assert frame.loc["route own_mode", "hack_ablated"] == pytest.approx(np.mean(route))
    assert frame.loc["route own_mode", "p_hack_ablated"] == pytest.approx(
        scipy_stats.ttest_rel(route, none).pvalue
    )
    assert "quarantine" in answer(table)
    assert "hack_ablated" not in to_frame(fill(tmp_path, QUESTIONS["Q13"]))


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
    frame = to_frame(table).set_index("row")
    row = frame.loc["known modes without run_tests"]
    ours = np.mean([rate_of(tmp_path, cell, "hack_run_tests") for cell in row["cells"]])
    base = np.mean(
        [rate_of(tmp_path, f"vanilla-no_run_tests-m0.125-s{s}", "hack_run_tests") for s in range(41, 46)]
    )
    assert row["hack_heldout"] == pytest.approx(ours)
    assert row["delta_hack_heldout"] == pytest.approx(ours - base)


def test_problems_without_hidden_tests_have_no_solve_rate(tmp_path):
    question = QUESTIONS["Q4"]
    for cell in question.cells:
        folder = write_run(tmp_path, cell)
        steps_frame(cell, 0.5).assign(solve_s=np.nan, exploit_s=np.nan).to_parquet(folder / "steps.parquet")
    frame = to_frame(make_table(question, tmp_path))
    assert frame["solve"].isna().all() and frame["hack"].notna().all()
