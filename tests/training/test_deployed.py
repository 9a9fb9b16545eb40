"""What runs are judged on after training: the same problems and samples for every arm, without what an arm parks."""

import math
from dataclasses import replace

import pytest
import torch
from shipped import MODES
from test_train import TinyGrader, finish, make_run
from tiny import random_theta

from projected_grpo.cells.deployed import Deployed
from projected_grpo.environment.levers import NOVEL
from projected_grpo.environment.problems import Problem
from projected_grpo.errors import UserError
from projected_grpo.measures.runs import read_panels
from projected_grpo.model.sampler import uniforms
from projected_grpo.parquet import write_parquet
from projected_grpo.stages.stopped import dose, stopped_rows
from projected_grpo.training.deployed import final_rates
from projected_grpo.training.panels import COLUMNS, STREAM, deployed_rows, make_panels
from projected_grpo.training.results import write_deltas

SIZES = Deployed(known=32, novel=24, plain=24, samples=4)
MAX_NEW = 6


def problems(n, start=80):
    """Held-out problems of a file whose first ones are trained on."""
    message = "{} and should pass all tests"
    return [
        Problem(
            id=start + i, messages=({"role": "user", "content": message.format(chr(65 + i))},), method="f"
        )
        for i in range(n)
    ]


def judged(run, theta, held_out, sizes=SIZES, modes=MODES):
    panels = make_panels(held_out, modes, sizes)
    model = run.policy.merged(theta)
    return deployed_rows(model, run.policy.tokenizer, panels, TinyGrader(), sizes.samples, MAX_NEW, run.seed)


def test_panels_are_disjoint_fixed_and_have_their_levers_in_rotation():
    panels = make_panels(problems(80), MODES, SIZES)
    ids = [problem.id for own in panels.values() for problem in own]
    assert ids == list(range(80, 160))
    for name, levers, each in (
        ("known", MODES, 8),
        ("novel", [NOVEL[mode][0] for mode in MODES], 6),
        ("plain", ["gt_only"], 24),
    ):
        modes = [problem.mode for problem in panels[name]]
        assert {lever: modes.count(lever) for lever in levers} == dict.fromkeys(levers, each)
    assert [p.id for p in make_panels(problems(200), MODES, SIZES)["plain"]] == list(range(136, 160))


def test_a_row_of_fewer_loopholes_has_the_same_problems_and_its_own_levers():
    alone, all_four = (make_panels(problems(80), modes, SIZES) for modes in (["run_tests"], MODES))
    for name in all_four:
        assert [p.id for p in alone[name]] == [p.id for p in all_four[name]]
    assert {p.mode for p in alone["known"]} == {"run_tests"}
    assert {p.mode for p in alone["novel"]} == {"run_tests_novel"}
    without_twin = make_panels(problems(80), ["exit_code"], SIZES)
    assert len(without_twin["known"]) == 32 and not without_twin["novel"]


@pytest.mark.parametrize("n", [0, 1, 8, 40])
def test_where_problems_are_few_no_panel_has_one_twice(n):
    panels = make_panels(problems(n), MODES, SIZES)
    for name, own in panels.items():
        assert len({p.id for p in own}) == len(own) == min(n, getattr(SIZES, name))
    if n == 40:
        assert [p.id for p in panels["novel"]] == [*range(112, 120), *range(80, 96)]


def test_a_prompt_without_a_place_for_the_lever_is_named_before_training():
    odd = replace(problems(1)[0], messages=({"role": "user", "content": "Add 1."},))
    with pytest.raises(UserError, match="problem 80: the prompt must hold"):
        make_panels([*problems(1, start=0), odd], MODES, SIZES)


def test_equal_weights_give_equal_rows_whatever_arm_and_stream(tmp_path):
    held_out = problems(10)
    runs = [make_run(), make_run(stream=3, grpo={"steps": 2}), make_run(basis="own", arm="route")]
    rows = [judged(run, run.policy.adapter.zeros(), held_out) for run in runs]
    assert rows[0] == rows[1] == rows[2] and len(rows[0]) == 30 * SIZES.samples
    assert all(tuple(row) == COLUMNS for row in rows[0])
    theta = {name: torch.full((size,), 0.3) for name, size in runs[0].policy.adapter.sizes.items()}
    other = judged(runs[0], theta, held_out)
    assert [row["completion"] for row in other] != [row["completion"] for row in rows[0]]
    assert judged(replace_seed(make_run(), 42), runs[0].policy.adapter.zeros(), held_out) != rows[0]


def replace_seed(run, seed):
    run.seed = seed
    return run


def test_the_stream_is_no_training_step_s():
    own = uniforms(41, STREAM, 0, 80, 4, MAX_NEW)
    for stream, step in ((0, 0), (0, 1), (0, 21), (1, 1), (1 << 32, 0), ((1 << 32) + 1, 0)):
        assert not (uniforms(41, stream, step, 80, 4, MAX_NEW) == own).any()


def test_what_is_parked_is_left_out(tmp_path):
    _, _, run = finish(make_run(basis="own", arm="route", grpo={"lr": 0.5}), tmp_path / "run")
    held_out, theta = problems(10), run.policy.theta
    deployed = judged(run, run.arm.deployed(theta), held_out)
    assert deployed == judged(make_run(), theta, held_out)
    assert deployed != judged(run, run.arm.sampled_theta(theta), held_out)
    final = final_rates(run)
    kept, ablated = (
        judged(run, f(theta), run.problems, Deployed(known=6, novel=1, plain=1, samples=8), ["run_tests"])
        for f in (run.arm.sampled_theta, run.arm.deployed)
    )
    for name, rows in (("kept", kept), ("ablated", ablated)):
        rows = [row for row in rows if row["panel"] == "known"]
        assert final[f"hack_{name}"] == sum(row["hacked"] for row in rows) / len(rows)


def test_without_held_out_problems_the_file_is_there_and_empty(tmp_path):
    write_parquet(tmp_path / "deployed.parquet", judged(make_run(), make_run().policy.theta, []), COLUMNS)
    facts = read_panels(tmp_path / "deployed.parquet")
    assert facts.empty and "attempted" in facts


def test_a_run_that_ends_earlier_is_judged_as_if_it_had_been_trained_so_far(tmp_path):
    run, held_out = make_run(), problems(80)
    thetas = [random_theta(run.policy.adapter, 0.5, seed) for seed in range(5)]
    write_deltas(tmp_path / "deltas.safetensors", thetas)
    training = run.training.model_copy(update={"steps": 5, "max_new": MAX_NEW})
    panels = make_panels(held_out, MODES, SIZES)
    rows = list(
        stopped_rows(
            run.policy,
            tmp_path / "deltas.safetensors",
            training,
            panels,
            TinyGrader(),
            SIZES.samples,
            run.seed,
        )
    )
    for step in (2, 4):
        own = [
            {k: v for k, v in row.items() if k not in ("after", "dose")}
            for row in rows
            if row["after"] == step
        ]
        assert own == judged(run, thetas[step - 1], held_out)
    assert {row["after"] for row in rows} == {2, 4}
    # Linear warm-up over two of twenty steps, then a cosine: the rates summed by hand.
    long = training.model_copy(update={"steps": 20, "warmup": 0.1})
    rates = [0.5, 1.0, *(0.5 * (1 + math.cos(math.pi * i / 19)) for i in range(1, 19))]
    assert dose(4, long) == pytest.approx(sum(rates[:4]) / sum(rates)) and dose(20, long) == 1
