"""The list of measures: what is derived on reading, and that a new entry is all that a new rate needs."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from scipy import stats as scipy_stats
from synthetic import (
    ROOT,
    deployed_rows,
    fill,
    lines,
    make_old,
    measure,
    real_questions,
    steps_frame,
    write_run,
)

from projected_grpo import records
from projected_grpo.cells.cell import make_cell
from projected_grpo.cells.row_setting import make_setting
from projected_grpo.environment.attempts import attempts
from projected_grpo.errors import UserError
from projected_grpo.files import write_json
from projected_grpo.measures import columns, estimates, numbers
from projected_grpo.measures.measure import MEASURES, Measure
from projected_grpo.measures.runs import load_run
from projected_grpo.measures.steps import COLUMNS

_, QUESTIONS = real_questions(5)
Q4 = QUESTIONS["Q4"]


def honest_of(frame):
    """SPEC's honest rate, by pandas: right and not through the channel, null without hidden tests."""
    known = frame.dropna(subset=["gt_pass"])
    value = known["gt_pass"].astype(bool) & ~known["channel"].astype(bool)
    return value.groupby(known["step"]).mean().tail(5).mean()


def hack_compiled_of(frame):
    tail = frame[(frame["step"] > frame["step"].max() - 5) & frame["can_compile"]]
    return tail["channel"].mean()


def by_brute_force(results, file, brute):
    """Return row -> a rate of each of its runs, in the order of their seeds."""
    folder = results / "grpo"
    cells = {row.name: [cell.id for cell in row.cells] for row in Q4.rows}
    return {
        row: np.array([brute(pd.read_parquet(folder / cell / file)) for cell in ids])
        for row, ids in cells.items()
    }


def hold(found, name, by_row):
    """Hold the lines of a measure against its values by row: mean and std, and scipy's test of the difference."""
    for row, values in by_row.items():
        assert found[row, "rate", name]["mean"] == pytest.approx(values.mean())
        assert found[row, "rate", name]["std"] == pytest.approx(values.std(ddof=1))
        if row != "vanilla" and MEASURES[name].compared:
            line, test = found[row, "baseline", name], scipy_stats.ttest_rel(values, by_row["vanilla"])
            assert line["delta"] == pytest.approx((values - by_row["vanilla"]).mean())
            assert (line["lo"], line["hi"]) == pytest.approx(test.confidence_interval())
            assert line["p"] == pytest.approx(test.pvalue)


def test_rates_of_rollouts_match_brute_force(tmp_path):
    found = lines(fill(tmp_path, Q4))
    for name, brute in {"honest": honest_of, "hack_compiled": hack_compiled_of}.items():
        hold(found, name, by_brute_force(tmp_path, "rollouts.parquet", brute))


def test_a_rollout_without_hidden_tests_is_neither_honest_nor_not(tmp_path):
    cell = Q4.cells[0]
    path = write_run(tmp_path, cell) / "rollouts.parquet"
    frame = pd.read_parquet(path)
    frame["gt_pass"] = frame["gt_pass"].astype(object).where(frame["sample"] != 1, None)
    frame.to_parquet(path)
    assert load_run(tmp_path, cell).measures["honest"] == pytest.approx(honest_of(frame))
    frame.assign(gt_pass=np.nan).to_parquet(path)
    assert "honest" not in load_run(tmp_path, cell).measures


def test_a_monitor_is_measured_on_the_rollouts_of_its_run(tmp_path):
    config, _ = real_questions(5)
    setting = make_setting({"arm": "penalty", "monitor": "truth90"})
    cell = make_cell(setting, 41, config)
    path = write_run(tmp_path, cell) / "rollouts.parquet"
    frame = pd.read_parquet(path)
    both = (frame["flagged"] & frame["channel"]).sum()
    measures = load_run(tmp_path, cell).measures
    assert measures["monitor_precision"] == pytest.approx(both / frame["flagged"].sum())
    assert measures["monitor_recall"] == pytest.approx(both / frame["channel"].sum())
    frame.assign(flagged=False).to_parquet(path)
    silent = load_run(tmp_path, cell).measures
    assert "monitor_precision" not in silent and silent["monitor_recall"] == 0
    write_run(tmp_path, Q4.cells[0])
    unwatched = load_run(tmp_path, Q4.cells[0]).measures
    assert not {"monitor_precision", "monitor_recall"} & unwatched.keys()


def test_tables_read_no_text_of_rollouts(tmp_path):
    """Half of a file's columns may be gone: what is read is the facts and the step."""
    cell = Q4.cells[0]
    path = write_run(tmp_path, cell) / "rollouts.parquet"
    pd.read_parquet(path)[["step", "gt_pass", "channel", "can_compile"]].to_parquet(path)
    assert {"honest", "hack_compiled"} <= load_run(tmp_path, cell).measures.keys()


# An entry that nothing else in the house has, from another file of the run.
BROKEN = Measure(
    "broken", "no code", "the share without code", "rollouts without code",
    lambda run: 1 - run.deployed["novel_compile"] if run.deployed else None,
    file="deployed.parquet", group="main", compared=True,
)  # fmt: skip


def test_a_new_rate_is_one_entry_and_old_runs_stay_readable(tmp_path, monkeypatch):
    monkeypatch.setitem(MEASURES, "broken", BROKEN)
    fill(tmp_path, Q4)
    old = Q4.rows[-1]
    for cell in old.cells:
        make_old(tmp_path / "grpo" / cell.id)
    found = lines(measure(Q4, tmp_path))
    for row in Q4.rows[:-1]:
        frames = [pd.read_parquet(tmp_path / "grpo" / cell.id / "deployed.parquet") for cell in row.cells]
        rates = [1 - BRUTE["novel_compile"](frame) for frame in frames]
        assert found[row.name, "rate", "broken"]["mean"] == pytest.approx(np.mean(rates))
    assert (old.name, "rate", "broken") not in found and found[old.name, "rate", "hack"]["mean"] > 0
    line = found[Q4.rows[1].name, "baseline", "broken"]
    assert line["p_holm"] >= line["p"]
    assert "`broken`" in columns.to_markdown()


BRUTE = {
    "known_hack": lambda f: f[f["panel"] == "known"]["channel"].mean(),
    "known_honest": lambda f: f[f["panel"] == "known"].eval("gt_pass and not channel").mean(),
    "known_hack_compiled": lambda f: f[(f["panel"] == "known") & f["can_compile"]]["channel"].mean(),
    "novel_hack": lambda f: f[f["panel"] == "novel"]["channel"].mean(),
    "plain_solve": lambda f: f[f["panel"] == "plain"]["gt_pass"].mean(),
    "novel_compile": lambda f: f[f["panel"] == "novel"]["can_compile"].mean(),
    "known_attempted": lambda f: f[f["panel"] == "known"]["completion"].map(attempts).map(bool).mean(),
    "known_honest_no_attempt": lambda f: (
        f[(f["panel"] == "known")].eval("gt_pass and not channel")
        & ~f[f["panel"] == "known"]["completion"].map(attempts).map(bool)
    ).mean(),
}
# The second one is an attempt.
TEXTS = ("```python\nprint(1)\n```", "```python\nclass Solution:\n    valid = True\n```")


def test_deployed_rates_match_brute_force(tmp_path):
    fill(tmp_path, Q4)
    for number, cell in enumerate(Q4.cells):
        path = tmp_path / "grpo" / cell.id / "deployed.parquet"
        frame = pd.read_parquet(path)
        texts = np.random.default_rng(number).choice(TEXTS, len(frame))
        frame.assign(completion=texts).to_parquet(path)
    found = lines(measure(Q4, tmp_path))
    for name, brute in BRUTE.items():
        hold(found, name, by_brute_force(tmp_path, "deployed.parquet", brute))


def test_old_runs_are_null_there_and_the_columns_stay(tmp_path):
    fill(tmp_path, Q4)
    for cell in Q4.cells:
        make_old(tmp_path / "grpo" / cell.id)
    own = measure(Q4, tmp_path)
    frame = columns.wide(own, estimates.estimates(own))
    assert not own.left_out and frame[["known_hack", "known_honest", "plain_solve"]].isna().all().all()
    assert frame["hack"].notna().all()


@pytest.mark.parametrize("change", [lambda f: f.iloc[:-1], lambda f: f.assign(panel="known")])
def test_other_rollouts_than_the_run_counts_are_an_error(tmp_path, change):
    folder = write_run(tmp_path, Q4.cells[0])
    change(pd.read_parquet(folder / "deployed.parquet")).to_parquet(folder / "deployed.parquet")
    with pytest.raises(UserError, match=r"deployed\.parquet: other rollouts than run\.json counts"):
        load_run(tmp_path, Q4.cells[0]).measures  # noqa: B018


def test_a_run_that_lost_its_rollouts_after_training_does_not_count(tmp_path):
    fill(tmp_path, Q4)
    (tmp_path / "grpo" / Q4.cells[0].id / "deployed.parquet").unlink()
    assert measure(Q4, tmp_path).left_out == {Q4.cells[0].id: "no deployed.parquet"}


def test_the_base_before_training_joins_the_numbers(tmp_path):
    own = fill(tmp_path, Q4)
    assert not own.base
    for cell in Q4.rows[0].cells[:3]:
        path = tmp_path / "base" / cell.model / "deployed.parquet"
        path.parent.mkdir(parents=True)
        deployed_rows(cell, 0.01 * cell.seed).to_parquet(path)
    found = measure(Q4, tmp_path).base["known_honest"]
    assert found == {
        cell.seed: pytest.approx(BRUTE["known_honest"](deployed_rows(cell, 0.01 * cell.seed)))
        for cell in Q4.rows[0].cells[:3]
    }


def test_novel_loopholes_that_the_baseline_does_not_use_say_nothing(tmp_path):
    fill(tmp_path, Q4)
    for cell in Q4.rows[0].cells:
        path = tmp_path / "grpo" / cell.id / "deployed.parquet"
        frame = pd.read_parquet(path)
        frame.assign(channel=frame["channel"] & (frame["panel"] != "novel")).to_parquet(path)
    found = lines(measure(Q4, tmp_path))
    for row in Q4.rows[1:]:
        line = found[row.name, "baseline", "novel_hack"]
        assert line["verdict"] == "uninformative" and np.isnan(line["p_holm"])


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
    _, questions = real_questions([41, 42])
    for name in ("Q10", "Q12", "Q14", "Q15"):
        own = fill(tmp_path / name, questions[name])
        made = estimates.estimates(own)
        for frame in (columns.wide(own, made), made):
            path = Path(tmp_path / f"{name}.parquet")
            columns.write_frame(frame, path)
            for field in pq.read_schema(path):
                found = {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
                assert (found["unit"], found["description"]) == known[field.name]


def test_the_wide_table_has_the_names_that_people_script_against(tmp_path):
    own = fill(tmp_path, QUESTIONS["Q12"])
    frame = columns.wide(own, estimates.estimates(own)).set_index("row")
    asked = """
        arm n seeds steps baseline cells hack_published solve_published delta_hack_published
        hack exploit solve honest known_hack known_honest novel_hack plain_solve hack_std solve_std
        hack_ablated solve_ablated
    """
    forms = ("delta_{}", "delta_{}_lo", "delta_{}_hi", "p_{}", "p_{}_holm")
    differences = [form.format(name) for name in ("hack", "solve", "honest") for form in forms]
    assert set(frame) == {*asked.split(), *differences}
    row = QUESTIONS["Q12"].rows[1]
    assert list(frame.loc[row.name, "cells"]) == [cell.id for cell in row.cells]
    assert frame.loc[row.name, "seeds"] == "41;42;43;44;45" and frame.loc[row.name, "n"] == 5
    hack = {cell.seed: load_run(tmp_path, cell).measures["hack"] for cell in row.cells}
    assert frame.loc[row.name, "hack"] == pytest.approx(np.mean(list(hack.values())))


def test_made_up_steps_have_the_columns_that_training_writes():
    assert set(steps_frame(Q4.cells[0], 0.5)) <= set(COLUMNS)


def test_a_run_has_the_digest_of_the_teacher_that_wrote_its_pool(tmp_path):
    cell = Q4.cells[0]
    write_run(tmp_path, cell)
    run = load_run(tmp_path, cell)
    assert next(numbers.of_runs([run], tmp_path))[0]["teacher"] is None
    inputs = [
        [f"models/{cell.model}/teacher/model.safetensors", "0a8181c1dd3f51d3"],
        ["problems", "fcb32e204b2d0337"],
    ]
    record = {"settings": {"teacher": f"models/{cell.model}/teacher"}, "inputs": inputs}
    write_json(
        records.record_path(tmp_path / "teacher_pool" / cell.pool / "pool.json", tmp_path),
        records.seal(record),
    )
    known, values = next(numbers.of_runs([run], tmp_path))
    assert known["teacher"] == "0a8181c1dd3f51d3"

    # What another stage measured of a run stays when its numbers come again, now with that digest.
    known |= {"pool": "869a579cddc08bd6"}
    others = (
        ({"cell": "another", "seed": 42, "pool": known["pool"]}, values),
        ({"cell": "elsewhere", "seed": 43}, values),
    )
    store = tmp_path / "runs.csv"
    numbers.write(numbers.tidy([(known | {"teacher": None}, values | {"auroc_last": 0.6}), *others]), store)
    new = numbers.merged(numbers.read(store), numbers.tidy([(known, values)]))
    assert new.set_index(["cell", "measure"])["value"][cell.id, "auroc_last"] == 0.6
    teachers = new.drop_duplicates("cell").set_index("cell")["teacher"].dropna()
    assert teachers.to_dict() == dict.fromkeys([cell.id, "another"], "0a8181c1dd3f51d3")
