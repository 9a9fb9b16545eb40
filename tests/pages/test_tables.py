"""Tables against a brute-force recomputation from the run folders."""

import json
import math

import numpy as np
import pandas as pd
import pytest
import shipped
import yaml
from scipy import stats as scipy_stats
from synthetic import ROOT, fill, rate_of, real_questions, steps_frame, write_run

from projected_grpo.cells.cell import load_questions
from projected_grpo.cells.config import Config
from projected_grpo.measures import stats
from projected_grpo.measures.columns import PUBLISHED, TESTS, to_frame, write_frame
from projected_grpo.measures.table import make_table, published_rows
from projected_grpo.pages import answers, markdown
from projected_grpo.pages.question import to_page

_, QUESTIONS = real_questions(5)


def to_markdown(table):
    return markdown.to_markdown(to_page(table, {}))


def answer(table):
    return markdown.render(answers.answer(table), "")


@pytest.fixture(scope="module")
def q10(tmp_path_factory):
    results = tmp_path_factory.mktemp("results")
    return results, fill(results, QUESTIONS["Q10"])


def test_table_matches_brute_force(q10):
    results, table = q10
    frame = to_frame(table).set_index("row")
    claims, placebos = {}, {}  # a family each
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
        if pd.isna(baseline := frame.loc[row, "baseline"]):
            assert math.isnan(frame.loc[row, "delta_hack"])
            continue
        vanilla = frame.loc[baseline, "cells"]
        test = scipy_stats.ttest_rel(hack, [rate_of(results, cell) for cell in vanilla])
        low, high = test.confidence_interval(0.95)
        seen = frame.loc[row, ["delta_hack_lo", "delta_hack_hi", "p_hack"]].tolist()
        assert seen == pytest.approx([low, high, test.pvalue])
        (claims if pd.isna(frame.loc[row, "population"]) else placebos)[row] = test.pvalue
    assert len(placebos) == 20 and len(claims) == 23
    for ps in (claims, placebos):
        ranked = sorted(ps, key=ps.get)
        running = 0
        for rank, row in enumerate(ranked):
            running = max(running, min(1, (len(ranked) - rank) * ps[row]))
            assert frame.loc[row, "p_hack_holm"] == pytest.approx(running)


def test_places_match_brute_force(q10):
    """A row's place by its definition: one more draw from ten placebos, each a mean difference over seeds."""
    results, table = q10
    frame = to_frame(table).set_index("row")

    def effect(row, column):
        mine, others = (
            np.mean([rate_of(results, cell, column) for cell in frame.loc[name, "cells"]])
            for name in (row, frame.loc[row, "baseline"])
        )
        return mine - others

    placed = frame["place_in"].dropna()
    assert len(placed) == 9
    for measure, column in (("hack", "hack_s"), ("solve", "solve_s")):
        ps = {}
        for row, population in placed.items():
            others = [effect(name, column) for name in frame.index[frame["population"] == population]]
            assert len(others) == 10
            t = (effect(row, column) - np.mean(others)) / (np.std(others, ddof=1) * math.sqrt(1.1))
            assert frame.loc[row, f"place_{measure}_t"] == pytest.approx(t)
            ps[row] = 2 * scipy_stats.t.sf(abs(t), 9)
            assert frame.loc[row, f"place_{measure}_p"] == pytest.approx(ps[row])
            assert frame.loc[row, f"place_{measure}_rank"] == 1 + sum(o < effect(row, column) for o in others)
        smallest = min(ps, key=ps.get)
        assert frame.loc[smallest, f"place_{measure}_p_holm"] == pytest.approx(min(1, 9 * ps[smallest]))
    page = to_markdown(table)
    grid, placebos = page[page.index("**Place of the hack rate") :].split("**Placebos: mean")[:2]
    assert "| own_mode | code | -0." in grid and "| moral | text |" in grid and "null_city" not in grid
    assert "| text placebos | 10 |" in placebos and "| code placebos, names | 2 |" in placebos
    assert (
        "| text placebo 1 |" not in page and "text placebos, seen: erase-placebo_text_01-m0.125-s41" in page
    )


def test_a_row_has_no_place_where_its_placebos_are_missing(tmp_path):
    question = QUESTIONS["Q10"]
    gone = tuple(cell.id for row in question.rows if row.population == "text" for cell in row.cells)
    one = f"erase-placebo_code_01-m0.125-s{41}"
    table = fill(tmp_path, question, skip=(*gone, one))
    assert not table.line("moral").place
    place = table.line("own_mode").place["hack"]
    assert (place.m, place.n) == (10, 4), "it has other seeds"
    seeds = range(42, 46)
    base = [rate_of(tmp_path, f"vanilla-m0.125-s{s}") for s in seeds]
    mine = [rate_of(tmp_path, f"erase-own_mode-m0.125-s{s}") for s in seeds]
    assert place.value == pytest.approx(np.mean(mine) - np.mean(base))
    ps = [line.place["hack"].p for line in table.lines if "hack" in line.place]
    assert len(ps) == 4 and place.holm == pytest.approx(stats.holm(ps, 5)[0]), "five wait for their placebos"


def test_parquet_columns_and_types(q10, tmp_path):
    _, table = q10
    write_frame(to_frame(table), tmp_path / "Q10.parquet")
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

    reference = Path(__file__).resolve().parents[2].parent / "shared/reference/published.csv"
    if not reference.exists():
        pytest.skip("no shared reference")
    pd.testing.assert_frame_equal(published_rows(), pd.read_csv(reference, dtype={"seeds": str}))


def test_markdown_begins_with_the_answer_and_ends_with_published_and_sources(q10):
    _, table = q10
    page = to_markdown(table)
    assert (
        page.index("**Answer.**")
        < page.index("| row |")
        < page.index("Published: Qwen3-4B")
        < page.index("<!-- sources")
    )
    assert answer(table) in page[: page.index("| row |")]
    assert "erase-null_city-m0.125-s45" in page
    assert "Lower the hack rate" in page and "`own_mode` -0." in page
    assert "nan" not in page.lower().replace("finance", "")


def test_missing_and_short_runs_are_named_and_the_rest_printed(tmp_path):
    question = QUESTIONS["Q2"]
    missing = "erase-own_mode-final-m0.5-s43"
    table = fill(tmp_path, question, skip=(missing,))
    short = tmp_path / "grpo/vanilla-final-m0.5-s41/steps.parquet"
    pd.read_parquet(short).iloc[:12].to_parquet(short)
    table = make_table(question, tmp_path)
    assert table.left_out == {"vanilla-final-m0.5-s41": "12 of 20 steps", missing: "missing"}
    frame = to_frame(table).set_index("row")
    assert frame.loc["vanilla", "seeds"] == "42;43;44;45"
    own = table.line("own_mode frozen-V")
    assert own.seeds == (41, 42, 44, 45) and own.to_baseline["hack"].seeds == (42, 44, 45)
    page = to_markdown(table)
    assert f"`{missing}` (missing)" in page and "`vanilla-final-m0.5-s41` (12 of 20 steps)" in page


def test_a_partial_table_claims_nothing_that_the_whole_one_would_take_back(tmp_path):
    """Rows without runs count in Holm's family: adjusted p are those of the whole table or larger."""
    question = QUESTIONS["Q4"]
    whole = fill(tmp_path / "whole", question)
    skip = [cell.id for row in question.rows[3:] for cell in row.cells]
    part = fill(tmp_path / "part", question, skip=skip)
    for name in ("SVD k=5", "mean-diff k=1"):
        ours, theirs = (table.line(name).to_baseline["hack"] for table in (part, whole))
        assert (ours.delta, ours.p) == (theirs.delta, theirs.p)
        assert part.line(name).to_baseline["hack"].holm >= whole.line(name).to_baseline["hack"].holm
    ps = [part.line(name).to_baseline["hack"].p for name in ("SVD k=5", "mean-diff k=1")]
    assert min(part.line(name).to_baseline["hack"].holm for name in ("SVD k=5", "mean-diff k=1")) == min(
        1, 4 * min(ps)
    )


def test_a_shared_run_shows_its_final_rates_where_they_are_asked_for(tmp_path):
    table = fill(tmp_path, QUESTIONS["Q2"])
    assert any(run.info["final"] for line in table.lines for run in line.runs)
    assert not table.has("hack_ablated") and "quarantine" not in to_markdown(table)


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
    assert frame["delta_hack"].notna().sum() == len(questions["Q2"].rows) - 2
    assert "One seed" in answer(table)
    assert "(0." not in to_markdown(table).split("**Answer")[0].split("**Published")[0]


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


def test_arms_are_paired_with_the_row_they_name(tmp_path):
    question = QUESTIONS["Q3"]
    table = fill(tmp_path, question)
    frame = to_frame(table).set_index("row")
    ps = {}
    for row, other in frame["against"].dropna().items():
        ours, theirs = (
            [rate_of(tmp_path, cell) for cell in frame.loc[name, "cells"]] for name in (row, other)
        )
        test = scipy_stats.ttest_rel(ours, theirs)
        assert frame.loc[row, "delta_against_hack"] == pytest.approx(np.mean(ours) - np.mean(theirs))
        assert frame.loc[row, "p_against_hack"] == pytest.approx(test.pvalue)
        assert frame.loc[row, "delta_against_hack_hi"] == pytest.approx(test.confidence_interval().high)
        ps[row] = test.pvalue
    assert list(ps)[:4] == ["no_gate", "reverse", "own_mode no_gate", "own_mode reverse"]
    smallest = min(ps, key=ps.get)
    assert frame.loc[smallest, "p_against_hack_holm"] == pytest.approx(min(1, len(ps) * ps[smallest]))
    assert "| no_gate | one_sided | hack |" in to_markdown(table)
    assert "Arm against arm in the hack rate" in answer(table) and "`reverse` against `one_sided`" in answer(
        table
    )


def test_a_row_is_beyond_random_only_against_its_own_control(tmp_path):
    """The control differs in its axes alone; a row without one is neither beyond random nor not."""
    _, questions = real_questions(2)
    wanted = {
        "Q2": {
            "projected refresh-2": "random V refresh-2",
            "own_mode frozen-V, run_tests": "random V, run_tests",
        },
        "Q3": {"reverse": "random V reverse", "own_mode one_sided flipped": "random V one_sided"},
        "Q8": {"strong with k 12": "random V k 12", "own_mode k 2": "random V k 2"},
        "Q11": {"projected frozen-V": "random V", "projected refresh-2": "random V refresh-2"},
        "Q12": {
            "erase own_mode": "erase random V",
            "route own_mode, update space": "route random V, update space",
        },
        "Q13": {"own_mode k=1": "random V k=1", "own_mode k=5": "random V k=5"},
        "R6": {"own_mode LoRA": "random V LoRA", "own_mode SVD refresh-2": None},
    }
    for name, rows in wanted.items():
        table = make_table(questions[name], tmp_path)
        assert {row: table.line(row).random for row in rows} == rows
    said = answer(fill(tmp_path, questions["R6"])).partition("Arm against arm")[0]
    assert (
        "`own_mode LoRA` against `random V LoRA`" in said and "`own_mode SVD refresh-2` against" not in said
    )


def test_folds_as_one_are_the_mean_by_seed(tmp_path):
    table = fill(tmp_path, QUESTIONS["Q14"])
    frame = to_frame(table).set_index("row")
    modes = ("run_tests", "sentinel", "stdout_marker", "file_marker")

    def pooled(start):
        by_mode = [
            [
                rate_of(tmp_path, cell, f"hack_{mode}")
                for cell in frame.loc[f"{start} without {mode}", "cells"]
            ]
            for mode in modes
        ]
        return np.mean(by_mode, axis=0)

    known, vanilla, random = map(pooled, ("known modes", "vanilla", "random V"))
    row = frame.loc["known modes, all folds"]
    test = scipy_stats.ttest_rel(known, vanilla)
    assert row["hack_heldout"] == pytest.approx(known.mean()) and row["seeds"] == "41;42;43;44;45"
    assert row["delta_hack_heldout"] == pytest.approx(np.mean(known - vanilla))
    assert row["p_hack_heldout"] == pytest.approx(test.pvalue)
    others = scipy_stats.ttest_rel(random, vanilla).pvalue
    assert row["p_hack_heldout_holm"] == pytest.approx(stats.holm([test.pvalue, others])[0])
    assert row["delta_control"] == pytest.approx(np.mean(known - random))
    page = to_markdown(table)
    assert answer(table).startswith("**All 4 folds as one") and "chosen before the runs" in page
    assert page.index("Folds as one") < page.index("| vanilla without run_tests |")


def test_q15_pairs_the_leak_of_update_and_gradient_space(tmp_path):
    question = QUESTIONS["Q15"]
    leak = {}
    for cell in question.cells:
        folder = write_run(tmp_path, cell)
        if cell.setting.basis:
            frame = pd.read_parquet(folder / "steps.parquet")
            rng = np.random.default_rng([cell.seed, *cell.id.encode()])
            frame["cout_update"] = rng.uniform(0, 0.1, len(frame))
            leak[cell.id] = frame["cout_update"].tail(5).mean()
            frame.to_parquet(folder / "steps.parquet")
    table = make_table(question, tmp_path)
    frame = to_frame(table).set_index("row")
    update, gradient = (
        [leak[cell] for cell in frame.loc[f"own_mode {space} space", "cells"]]
        for space in ("update", "gradient")
    )
    row = frame.loc["own_mode update space"]
    assert row["delta_against_cout_update"] == pytest.approx(np.mean(update) - np.mean(gradient))
    assert row["p_against_cout_update"] == pytest.approx(scipy_stats.ttest_rel(update, gradient).pvalue)
    text = answer(table)
    assert "Arm against arm in the share of the applied update along the hack basis" in text
    assert "| own_mode update space | own_mode gradient space | cout_update |" in to_markdown(table)


def test_q14_of_a_pool_with_one_mode_has_that_fold_alone(tmp_path):
    config = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    config["pool"]["modes"] = ["run_tests"]
    question = load_questions(shipped.questions(), Config.model_validate(config))["Q14"]
    assert {row.setting.held_out_mode for row in question.rows} == {"run_tests"} and len(question.rows) == 3
    for cell in question.cells:
        folder = write_run(tmp_path, cell)
        others = ["hack_sentinel", "hack_stdout_marker", "hack_file_marker"]
        pd.read_parquet(folder / "steps.parquet").drop(columns=others).to_parquet(folder / "steps.parquet")
    frame = to_frame(make_table(question, tmp_path))
    assert frame["hack_heldout"].notna().all() and frame["delta_hack_heldout"].notna().sum() == 2


def test_problems_without_hidden_tests_have_no_solve_rate(tmp_path):
    question = QUESTIONS["Q4"]
    for cell in question.cells:
        folder = write_run(tmp_path, cell)
        steps_frame(cell, 0.5).assign(solve_s=np.nan, exploit_s=np.nan).to_parquet(folder / "steps.parquet")
    frame = to_frame(make_table(question, tmp_path))
    assert frame["solve"].isna().all() and frame["hack"].notna().all()
