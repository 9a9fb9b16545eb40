"""Run folders as tables read them: a damaged one is an error with its path, an unfinished one does not count."""

import json

import numpy as np
import pandas as pd
import pytest
from shipped import MODES
from snakemake.utils import update_config
from synthetic import fill, measure, real_questions, write_run

from projected_grpo.errors import UserError
from projected_grpo.measures.runs import load_run
from projected_grpo.training.ratio import RATIO_EDGES

CONFIG, QUESTIONS = real_questions([42, 43])


def damage(change):
    def write(path):
        frame = pd.read_parquet(path)
        change(frame).to_parquet(path)

    return write


# Columns that are never empty alone.
FULL = ("hack_s", "solve_s", "compile_s", "cin", "cout", "cout_update", "cin_null", "fired")
FULL += ("delta_norm", "ratio_mean")
BROKEN = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:400]),
    "empty file": lambda path: path.write_bytes(b""),
    "no hack_s": damage(lambda f: f.drop(columns="hack_s")),
    **{f"NaN in {name}": damage(lambda f, name=name: hole(f, name)) for name in FULL},
    "rate above one": damage(lambda f: f.assign(hack_s=f["hack_s"] + 0.9)),
    "repeated step": damage(lambda f: pd.concat([f.iloc[:19], f.iloc[[3]]])),
    "step cut out": damage(lambda f: f[f["step"] != 7]),
    "too many steps": damage(lambda f: pd.concat([f, f.tail(1).assign(step=21)])),
    "text in hack_s": damage(lambda f: f.assign(hack_s=f["hack_s"].astype(str))),
    "no fired": damage(lambda f: f.drop(columns="fired")),
    "text in cin": damage(lambda f: f.assign(cin=f["cin"].astype(str))),
    "NaN in cin_s and cin_t": damage(lambda f: hole(f, "cin_s", "cin_t")),
    "NaN in every loophole": damage(lambda f: hole(f, *(n for n in f if n in MODE_COLUMNS))),
    "loophole's rate above one": damage(lambda f: f.assign(hack_sentinel=1.2)),
    "cin below zero": damage(lambda f: f.assign(cin=-0.1)),
    "cout above one": damage(lambda f: f.assign(cout=1.4)),
    "infinite norm": damage(lambda f: f.assign(delta_norm=np.inf)),
    "overlap without a refresh": damage(lambda f: hole(f.assign(basis_overlap=2.0), "basis_overlap")),
    "no ratio_hist": damage(lambda f: f.assign(ratio_hist=[None] * len(f))),
    "a bin missing": damage(lambda f: f.assign(ratio_hist=[[1] * len(RATIO_EDGES)] * len(f))),
    "text in ratio_hist": damage(lambda f: f.assign(ratio_hist=[["1"] * (len(RATIO_EDGES) + 1)] * len(f))),
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
        measure(question, tmp_path)
    assert "\n" not in str(error.value)


def test_a_refreshing_run_says_its_overlap_at_every_refresh(tmp_path):
    question = QUESTIONS["Q2"]
    fill(tmp_path, question)
    path = tmp_path / "grpo/erase-own_mode-refresh2-m0.5-s42/steps.parquet"
    damage(lambda f: hole(f, "basis_overlap", step=8))(path)
    with pytest.raises(UserError, match=r"refresh2-m0\.5-s42/steps\.parquet: column 'basis_overlap'.*step 8"):
        measure(question, tmp_path)


def test_nulls_that_a_run_writes_are_no_damage(tmp_path):
    question = QUESTIONS["Q4"]
    fill(tmp_path, question)
    path = tmp_path / "grpo/erase-v_hack_full-m0.5-s42/steps.parquet"
    gradient = ("cin", "cin_s", "cin_t", "cout", "cout_update")
    damage(lambda f: hole(f, *gradient, step=1))(path)  # every group's rewards equal
    damage(lambda f: hole(f, "cin_t", step=2))(path)  # the teacher's groups alone
    for step in (4, 5):  # the teacher's rows have ended
        damage(lambda f, step=step: hole(f, "hack_t", "solve_t", "cin_t", step=step))(path)
    damage(lambda f: hole(f, "hack_sentinel", step=3))(path)  # no prompt of that loophole
    damage(lambda f: hole(f, "ratio_mean", "ratio_clip_low", "ratio_clip_high", "ratio_zeroed", step=4))(path)
    # Exploits are counted among the rollouts whose problem has hidden tests, hacks among all.
    damage(lambda f: f.assign(exploit_s=f["hack_s"] / 2 + 0.5))(path)
    assert measure(question, tmp_path).left_out == {}


def test_a_held_out_loophole_without_a_prompt_at_the_end_has_no_rate(tmp_path):
    cell = next(cell for cell in QUESTIONS["Q14"].cells if cell.setting.held_out_mode)
    write_run(tmp_path, cell)
    path = tmp_path / "grpo" / cell.id / "steps.parquet"
    for step in range(16, 21):
        damage(lambda f, step=step: hole(f, f"hack_{cell.setting.held_out_mode}", step=step))(path)
    found = load_run(tmp_path, cell).measures
    assert "hack_heldout" not in found and "hack" in found


def test_a_runs_columns_are_those_of_its_file(tmp_path):
    question = QUESTIONS["Q2"]
    fill(tmp_path, question)
    for cell in question.cells:
        steps = load_run(tmp_path, cell).steps
        frame = pd.read_parquet(tmp_path / "grpo" / cell.id / "steps.parquet")
        assert steps.keys() >= MODE_COLUMNS
        for column, values in steps.items():
            np.testing.assert_array_equal(values, frame[column].to_numpy(dtype=float), err_msg=column)


def test_a_run_without_its_record_does_not_count(tmp_path):
    question = QUESTIONS["Q4"]
    fill(tmp_path, question)
    (tmp_path / "grpo/vanilla-final-m0.5-s42/run.json").unlink()
    table = measure(question, tmp_path)
    assert table.left_out == {"vanilla-final-m0.5-s42": "no run.json"}
    assert sorted(table.of("vanilla", "hack")) == [43]


def edit(path, change):
    """Change keys of a run's record."""
    info = json.loads(path.read_text())
    update_config(info, change)
    path.write_text(json.dumps(info))


@pytest.mark.parametrize(
    "change, said",
    [
        ({"cell": "vanilla-final-m0.5-s43"}, "cell is 'vanilla-final-m0.5-s43'"),
        ({"settings": None}, "settings"),
        (
            {"settings": {"training": {"lr": 0.5}}},
            f"settings.training.lr is 0.5, the config says {CONFIG.grpo.lr}",
        ),
        ({"settings": {"seed": 43}}, "settings.seed is 43, the config says 42"),
        ({"final": {"hack_kept": "0.5"}}, "final.hack_kept is '0.5'"),
    ],
)
def test_a_run_of_other_settings_is_an_error_with_its_path(tmp_path, change, said):
    question = QUESTIONS["Q4"]
    fill(tmp_path, question)
    path = tmp_path / "grpo/vanilla-final-m0.5-s42/run.json"
    edit(path, change)
    with pytest.raises(UserError) as error:
        measure(question, tmp_path)
    assert str(error.value).startswith(f"{path}: ") and said in str(error.value)


def test_runs_on_different_pools_are_not_paired(tmp_path):
    question = QUESTIONS["Q4"]
    fill(tmp_path, question)
    arm = next(cell for cell in question.cells if cell.setting.arm == "erase" and cell.seed == 42)
    path = tmp_path / "grpo" / arm.id / "run.json"
    edit(path, {"inputs": {"pool": "another"}})
    with pytest.raises(UserError) as error:
        measure(question, tmp_path)
    assert str(error.value).startswith(f"{path}: inputs.pool is another, that of vanilla-final-m0.5-s42 is ")


def test_damaged_run_json_is_an_error(tmp_path):
    question = QUESTIONS["Q12"]
    fill(tmp_path, question)
    path = tmp_path / "grpo/vanilla-final-m0.5-s42/run.json"
    edit(path, {"final": {"hack_ablated": None}})
    with pytest.raises(UserError, match=r"vanilla-final-m0\.5-s42/run\.json: final\.hack_ablated is None"):
        measure(question, tmp_path)
    path.write_text(path.read_text()[:50])
    with pytest.raises(UserError, match=r"vanilla-final-m0\.5-s42/run\.json"):
        measure(question, tmp_path)
