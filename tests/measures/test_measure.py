"""The list of measures: what is derived on reading, and that a new entry is all that a new rate needs."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from scipy import stats as scipy_stats
from synthetic import ROOT, fill, real_questions, steps_frame, write_run

from projected_grpo.errors import UserError
from projected_grpo.measures import columns
from projected_grpo.measures import measure as measures
from projected_grpo.measures.measure import MEASURES, Measure, share
from projected_grpo.measures.runs import load_run
from projected_grpo.measures.steps import COLUMNS
from projected_grpo.measures.table import make_table
from projected_grpo.pages.markdown import to_markdown
from projected_grpo.pages.question import to_page

_, QUESTIONS = real_questions(5)
Q4 = QUESTIONS["Q4"]


def rollouts(results, cell):
    return pd.read_parquet(results / "grpo" / cell / "rollouts.parquet")


def honest_of(frame):
    """SPEC's honest rate, by pandas: right and not through the channel, null without hidden tests."""
    known = frame.dropna(subset=["gt_pass"])
    value = known["gt_pass"].astype(bool) & ~known["channel"].astype(bool)
    return value.groupby(known["step"]).mean().tail(5).mean()


def hack_compiled_of(frame):
    tail = frame[(frame["step"] > frame["step"].max() - 5) & frame["can_compile"]]
    return tail["channel"].mean()


@pytest.mark.parametrize("name, brute", [("honest", honest_of), ("hack_compiled", hack_compiled_of)])
def test_rates_of_rollouts_match_brute_force(tmp_path, name, brute):
    frame = columns.to_frame(fill(tmp_path, Q4)).set_index("row")
    by_row = {
        row: np.array([brute(rollouts(tmp_path, c)) for c in frame.loc[row, "cells"]]) for row in frame.index
    }
    ps = {}
    for row, values in by_row.items():
        assert frame.loc[row, name] == pytest.approx(values.mean())
        assert frame.loc[row, f"{name}_std"] == pytest.approx(values.std(ddof=1))
        if row != "vanilla":
            test = scipy_stats.ttest_rel(values, by_row["vanilla"])
            low, high = test.confidence_interval()
            seen = frame.loc[row, [f"delta_{name}_lo", f"delta_{name}_hi", f"p_{name}"]].tolist()
            assert seen == pytest.approx([low, high, test.pvalue])
            assert frame.loc[row, f"delta_{name}"] == pytest.approx(np.mean(values - by_row["vanilla"]))
            ps[row] = test.pvalue
    smallest = min(ps, key=ps.get)
    assert frame.loc[smallest, f"p_{name}_holm"] == pytest.approx(min(1, len(ps) * ps[smallest]))


def test_a_rollout_without_hidden_tests_is_neither_honest_nor_not(tmp_path):
    cell = Q4.cells[0]
    path = write_run(tmp_path, cell) / "rollouts.parquet"
    frame = pd.read_parquet(path)
    frame["gt_pass"] = frame["gt_pass"].astype(object).where(frame["sample"] != 1, None)
    frame.to_parquet(path)
    assert load_run(tmp_path, cell).measures["honest"] == pytest.approx(honest_of(frame))
    frame.assign(gt_pass=np.nan).to_parquet(path)
    assert "honest" not in load_run(tmp_path, cell).measures


def test_tables_read_no_text_of_rollouts(tmp_path):
    """Half of a file's columns may be gone: what is read is the facts and the step."""
    cell = Q4.cells[0]
    path = write_run(tmp_path, cell) / "rollouts.parquet"
    pd.read_parquet(path)[["step", "gt_pass", "channel", "can_compile"]].to_parquet(path)
    assert {"honest", "hack_compiled"} <= load_run(tmp_path, cell).measures.keys()


def known_hack():
    """An entry whose source is another file of the run."""
    of = share("deployed.parquet", "panel", measures.hack, lambda facts: facts["panel"] == "known")
    return Measure(
        "known_hack", "hack, known", "the deployed hack rate", "hacks", of, file="deployed.parquet",
        group="main", compared=True, delta=True, spoken=True,
    )  # fmt: skip


def test_a_new_rate_is_one_entry_and_old_runs_stay_readable(tmp_path, monkeypatch):
    monkeypatch.setitem(MEASURES, "known_hack", known_hack())
    monkeypatch.setattr("projected_grpo.pages.question.MAIN", ["hack", "solve", "honest", "known_hack"])
    fill(tmp_path, Q4)
    rng = np.random.default_rng(0)
    old = Q4.rows[-1]  # made before the file was written
    expected = {}
    for row in Q4.rows[:-1]:
        for cell in row.cells:
            panel = np.repeat(["known", "novel"], 20)
            frame = pd.DataFrame(
                {"panel": panel, "channel": rng.random(40) < 0.4, "gt_pass": True, "can_compile": True}
            )
            frame.to_parquet(tmp_path / "grpo" / cell.id / "deployed.parquet")
            expected.setdefault(row.name, []).append(frame.loc[panel == "known", "channel"].mean())
    table = make_table(Q4, tmp_path)
    frame = columns.to_frame(table).set_index("row")
    for name, values in expected.items():
        assert frame.loc[name, "known_hack"] == pytest.approx(np.mean(values))
    assert np.isnan(frame.loc[old.name, "known_hack"]) and frame.loc[old.name, "hack"] > 0
    assert frame.loc[Q4.rows[1].name, "p_known_hack_holm"] >= frame.loc[Q4.rows[1].name, "p_known_hack"]
    page = to_markdown(to_page(table, {}))
    assert "| hack, known | Δ hack, known |" in page and "the deployed hack rate" in page.lower()
    assert (
        columns.reference()["delta_known_hack_lo"][0] == "share" and "`known_hack`" in columns.to_markdown()
    )


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda f: f.assign(channel="yes"), "column 'channel' is large_string, not numbers"),
        (lambda f: f.assign(gt_pass=0.5), "column 'gt_pass' has a value that is neither"),
        (lambda f: f.drop(columns="can_compile"), "no column 'can_compile'"),
        (lambda f: f.assign(step=f["step"] + 20), "column 'step' has a step that the run has not"),
    ],
)
def test_damaged_facts_are_an_error_with_their_path(tmp_path, change, said):
    cell = Q4.cells[0]
    path = write_run(tmp_path, cell) / "rollouts.parquet"
    change(pd.read_parquet(path)).to_parquet(path)
    with pytest.raises(UserError) as error:
        load_run(tmp_path, cell).measures  # noqa: B018
    assert str(error.value).startswith(f"{path}: ") and said in str(error.value)


def test_the_reference_is_what_is_written_and_names_every_column(tmp_path):
    assert (ROOT / "docs/columns.md").read_text() == columns.to_markdown(), (
        "python -m projected_grpo.measures.columns"
    )
    known = columns.reference()
    for name in ("Q10", "Q12", "Q14", "Q15"):
        table = fill(tmp_path / name, QUESTIONS[name])
        path = Path(tmp_path / f"{name}.parquet")
        columns.write_frame(columns.to_frame(table), path)
        for field in pq.read_schema(path):
            found = {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
            assert (found["unit"], found["description"]) == known[field.name]


def test_made_up_steps_have_the_columns_that_training_writes():
    assert set(steps_frame(Q4.cells[0], 0.5)) <= set(COLUMNS)
