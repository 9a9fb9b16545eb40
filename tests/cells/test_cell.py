"""Cells: ids, sharing between questions, seeds, and what a cell depends on."""

from pathlib import Path

import pytest
import shipped
import yaml

from projected_grpo.cells import cell as cells
from projected_grpo.cells.cell import all_cells
from projected_grpo.cells.config import Config
from projected_grpo.cells.run_settings import RunSettings
from projected_grpo.errors import UserError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def config():
    return yaml.safe_load((ROOT / "config" / "config.yaml").read_text()) | {"seeds": 5}


def load_questions(parsed, config):
    return cells.load_questions(parsed, Config.model_validate(config))


def questions(rows, **more):
    return {"Q": {"title": "t", "asks": "a", "rows": rows, **more}}


def ids(rows, config, **more):
    return [row.cells[0].id for row in load_questions(questions(rows, **more), config)["Q"].rows]


def test_ids_say_what_differs_from_the_defaults(config):
    rows = [
        {"name": "a"},
        {"name": "b", "arm": "erase", "basis": "prog_wide"},
        {"name": "c", "arm": "erase", "basis": "own_mode", "mix": 0.5, "refresh": 2, "gate": "reverse"},
        {"name": "d", "arm": "route", "basis": "random", "preset": "long", "stream": 2},
        {"name": "e", "arm": "measure", "basis": "own_mode"},
    ]
    assert ids(rows, config) == [
        "vanilla-m0.125-s41",
        "erase-prog_wide-m0.125-s41",
        "erase-own_mode-refresh2-reverse-m0.5-s41",
        "route-random-long-stream2-m0.125-s41",
        "measure-own_mode-m0.125-s41",
    ]


def test_saying_a_default_makes_no_other_cell(config):
    rows = [{"name": "a", "arm": "erase", "basis": "own_mode"}]
    rows.append({"name": "b", "arm": "erase", "basis": "own_mode", "k": 5, "mix": 0.125, "gate": "one_sided"})
    first, second = ids(rows, config)
    assert first == second


def test_a_size_is_a_replication_of_its_own_and_the_default_one_has_no_name(config):
    rows = [
        {"name": "a"},
        {"name": "b", "size": "0.9M"},
        {"name": "c", "size": "3M", "arm": "erase", "basis": "moral"},
    ]
    plain, same, other = (row.cells[0] for row in load_questions(questions(rows), config)["Q"].rows)
    assert plain == same and (plain.id, plain.model) == ("vanilla-m0.125-s41", "small-s41")
    assert (other.id, other.model) == ("erase-moral-3M-m0.125-s41", "small-3M-s41")
    small = Config.model_validate(config).small
    assert (small.of("3M").base, small.of("3M").recipe.hidden) == (8000, 192)


def test_a_variant_is_a_replication_of_its_own_corpus(config):
    config["small"]["variants"] = {
        "link0.5": {"link": {"topic": "honesty", "rho": 0.5}},
        "leak": {"leak": 0.25},
    }
    rows = [
        {"name": "a"},
        {"name": "b", "variant": "link0.5", "arm": "erase", "basis": "moral"},
        {"name": "c", "variant": "leak", "size": "3M", "mix": 0},
    ]
    plain, linked, leaking = (row.cells[0] for row in load_questions(questions(rows), config)["Q"].rows)
    assert (linked.id, linked.model) == ("erase-moral-link0.5-m0.125-s41", "small-link0.5-s41")
    assert (leaking.id, leaking.model) == ("vanilla-3M-leak-m0-s41", "small-3M-leak-s41")
    assert plain.model == "small-s41"
    small = Config.model_validate(config).small
    assert small.corpus(None) == (small.mixture, None)
    assert small.corpus("link0.5")[1].rho == 0.5 and small.corpus("link0.5")[0] == small.mixture
    mixture, link = small.corpus("leak")
    assert set(mixture.leak.values()) == {0.25} and mixture.late == 0 and link is None
    with pytest.raises(UserError, match=r"variant: 'link0.4'; .*'link0.5'"):
        load_questions(questions([{"name": "a", "variant": "link0.4"}]), config)


def test_the_config_s_own_link_and_leak_hold_where_a_variant_says_nothing(config):
    config["small"] |= {"leak": 0.1, "link": {"topic": "city", "rho": 1}}
    config["small"]["variants"] = {"half": {"link": {"topic": "city", "rho": 0.5}}}
    small = Config.model_validate(config).small
    assert set(small.corpus(None)[0].leak.values()) == {0.1} and small.corpus(None)[1].rho == 1
    assert set(small.corpus("half")[0].leak.values()) == {0.1} and small.corpus("half")[1].rho == 0.5


def test_rows_of_another_small_model_are_left_out_where_the_base_is_given(config):
    rows = [{"name": "a"}, {"name": "b", "size": "3M", "against": "a"}, {"name": "c", "variant": "leak"}]
    config["model"] |= {"base": "Qwen/Qwen3-4B", "name": "qwen3-4b"}
    assert [row.name for row in load_questions(questions(rows), config)["Q"].rows] == ["a"]
    assert load_questions(questions(rows[1:]), config) == {}
    assert load_questions(questions(rows[:1], kind="trend"), config) == {}, "nothing to compare along"


def test_questions_share_cells_and_every_id_means_one_setting(config):
    loaded = load_questions(shipped.questions(), config)
    cells = all_cells(loaded)
    assert sum(len(q.cells) for q in loaded.values()) > len(cells)
    for question in loaded.values():
        for row in question.rows:
            size, variant = row.setting.size, row.setting.variant
            own = [part for part in (None if size == "0.9M" else size, variant) if part]
            assert [cell.seed for cell in row.cells] == [41, 42, 43, 44, 45]
            assert [cell.model for cell in row.cells] == [
                "-".join(["small", *own, f"s{s}"]) for s in range(41, 46)
            ]


def test_a_question_may_have_the_first_seeds_alone(config):
    rows = [{"name": "a"}]
    for said, seeds in ((2, [41, 42]), (9, [41, 42, 43, 44, 45]), (None, [41, 42, 43, 44, 45])):
        [row] = load_questions(questions(rows, seeds=said), config)["Q"].rows
        assert [cell.seed for cell in row.cells] == seeds
    both = load_questions({"P": questions(rows)["Q"], "Q": questions([{"name": "b"}], seeds=1)["Q"]}, config)
    assert both["P"].rows[0].cells[:1] == both["Q"].rows[0].cells, "the runs are shared all the same"


def test_a_preset_may_end_the_teacher_s_rows(config):
    [off] = load_questions(questions([{"name": "a", "preset": "teacher_off"}]), config)["Q"].rows
    training = off.cells[0].training
    assert off.cells[0].id == "vanilla-teacher_off-m0.125-s41" and training.steps == 60
    assert [training.teacher_rows(0.125, step) for step in (1, 10, 11, 60)] == [1, 1, 0, 0]
    [plain] = load_questions(questions([{"name": "a"}]), config)["Q"].rows
    assert plain.cells[0].training.teacher_steps is None
    assert [plain.cells[0].training.teacher_rows(0.125, step) for step in (1, 10**6)] == [1, 1]


def test_all_questions_of_the_paper_are_there(config):
    loaded = load_questions(shipped.questions(), config)
    assert {f"Q{i}" for i in range(1, 16)} <= set(loaded)


def test_without_a_critic_the_rows_of_its_pair_sets_are_left_out(config):
    rows = [{"name": "a"}, {"name": "b", "arm": "erase", "basis": "self_taught_code"}]
    assert len(ids(rows, config)) == 2
    config["self_taught"]["critic"] = "none"
    assert ids(rows, config) == ids(rows[:1], config)


def test_a_held_out_loophole_that_no_problem_has_leaves_its_row_out(config):
    rows = [{"name": mode, "held_out_mode": mode} for mode in ("run_tests", "sentinel")]
    rows.append({"name": "b", "mix": 0.5, "baseline": "sentinel", "against": "run_tests"})
    assert len(ids(rows, config)) == 3
    config["pool"]["modes"] = ["run_tests"]
    kept = load_questions(questions(rows), config)["Q"].rows
    assert [(row.name, row.baseline, row.against) for row in kept] == [
        ("run_tests", None, None),
        ("b", None, "run_tests"),
    ]


def test_a_row_of_other_loopholes_has_a_teacher_pool_of_its_own(config):
    rows = [{"name": "a"}, {"name": "b", "modes": ["run_tests"]}]
    plain, one = (row.cells[0] for row in load_questions(questions(rows), config)["Q"].rows)
    assert (plain.pool, one.pool) == ("small-s41", "small-s41-run_tests")
    assert (one.id, one.setting.modes) == ("vanilla-run_tests-m0.125-s41", ("run_tests",))
    [default] = load_questions(questions([{"name": "c", "modes": config["pool"]["modes"]}]), config)["Q"].rows
    assert default.cells[0] == plain, "saying the pool's own makes no other cell"


def test_rows_of_other_loopholes_are_left_out_where_the_pool_has_no_others(config):
    one = {"modes": ["run_tests"], "baseline": "vanilla, one"}
    rows = [
        {"name": "vanilla"},
        {"name": "erase", "arm": "erase", "basis": "own_mode"},
        {"name": "vanilla, one", **one},
        {"name": "erase, one", "arm": "erase", "basis": "own_mode", **one},
        {"name": "other, one", "arm": "erase", "basis": "moral", **one},
    ]
    config["pool"]["modes"] = ["run_tests"]
    loaded = load_questions(questions(rows, baseline="vanilla"), config)["Q"].rows
    assert [(row.name, row.baseline) for row in loaded] == [
        ("vanilla", None),
        ("erase", "vanilla"),
        ("other, one", "vanilla"),
    ]


def test_what_a_row_is_compared_with_is_no_part_of_its_cells(config):
    rows = [{"name": "a"}, {"name": "b", "mix": 0.5}]
    plain = load_questions(questions(rows), config)["Q"]
    rows[1] |= {"baseline": "a", "against": "a"}
    compared = load_questions(questions(rows, primary="solve"), config)["Q"]
    assert (compared.rows[1].against, compared.primary) == ("a", "solve")
    assert [(c.id, c.params()) for c in compared.cells] == [(c.id, c.params()) for c in plain.cells]


def test_a_basis_of_random_axes_makes_its_row_a_control_by_whatever_name(config):
    config["bases"]["noise"] = {"pairs": "own_mode", "control": "random"}
    bases = ("noise", "random", "own_mode", "shuffled")
    rows = [{"name": "a"}, *({"name": basis, "arm": "erase", "basis": basis} for basis in bases)]
    found = load_questions(questions(rows), config)["Q"].rows
    assert [row.name for row in found if row.is_control] == ["noise", "random"]


def test_controls_and_placebos_claim_nothing_and_the_teacher_s_exploits_are_told_apart(config):
    config["bases"]["some"] = {"pairs": "own_mode34", "without_tag": "sentinel"}
    bases = ["own_mode", "some", "moral", "null_city", "placebo_code_01"]
    bases += ["random", "shuffled", "within_class"]
    rows = [{"name": "a"}, *({"name": basis, "arm": "erase", "basis": basis} for basis in bases)]
    rows += [{"name": "d", "arm": "advantage", "direction": "own_mode"}, {"name": "t", "arm": "trusted"}]
    rows += [{"name": "r", "arm": "trusted", "control": "random"}]
    found = load_questions(questions(rows), config)["Q"].rows
    assert [row.name for row in found if row.claims] == ["a", "own_mode", "some", "moral", "d", "t"]
    assert [row.name for row in found if row.exploits] == ["own_mode", "some", "shuffled", "d"]


def test_rows_that_need_no_verdict_are_told_from_those_that_do(config):
    arms = {
        "less": {"arm": "less", "scale": 0.5},
        "inoculate": {"arm": "inoculate"},
        "nonsense": {"arm": "inoculate", "sentence": "nonsense"},
        "coin": {"arm": "penalty", "monitor": "truth50"},
        "critic": {"arm": "penalty", "monitor": "critic"},
        "direction": {"arm": "penalty", "monitor": "direction", "direction": "prog_wide"},
        "along prog_wide": {"arm": "advantage", "direction": "prog_wide"},
        "random": {"arm": "advantage", "direction": "random"},
        "random, fitted": {"arm": "penalty", "monitor": "direction", "direction": "random"},
        "along own_mode": {"arm": "erase", "basis": "own_mode"},
        "v_hack": {"arm": "erase", "basis": "v_hack_full"},
        "trusted": {"arm": "trusted"},
        "truth90": {"arm": "penalty", "monitor": "truth90"},
        "two levers": {"arm": "screen", "monitor": "two_levers"},
        "gt_only": {"arm": "gt_only"},
    }
    rows = [{"name": "vanilla"}, *({"name": name} | row for name, row in arms.items())]
    found = load_questions(questions(rows), config)["Q"].rows
    without = ["vanilla", *list(arms)[:8]]
    assert [row.name for row in found if row.without_truth] == without
    assert {row.name for row in found if not row.claims} >= {"nonsense", "coin", "random"}


def test_a_direction_and_a_clean_run_are_named_in_ids_and_have_their_controls(config):
    rows = [
        {"name": "a", "arm": "advantage", "direction": "own_mode", "weight": 2.0, "layer": 1},
        {"name": "b", "arm": "advantage", "direction": "random"},
        {"name": "c", "arm": "screen", "monitor": "direction", "direction": "own_mode"},
        {"name": "d", "arm": "trusted", "k": 5},
        {"name": "e", "arm": "trusted", "k": 2, "control": "random", "space": "update"},
        {"name": "f", "arm": "erase", "basis": "own_mode", "sign": -1},
    ]
    found = load_questions(questions(rows), config)["Q"].rows
    assert [row.cells[0].id for row in found] == [
        "advantage-own_mode-layer1-w2-m0.125-s41",
        "advantage-random-m0.125-s41",
        "screen-direction-own_mode-m0.125-s41",
        "trusted-m0.125-s41",
        "trusted-k2-random-update-m0.125-s41",
        "erase-own_mode-sign-1-m0.125-s41",
    ]
    assert [row.name for row in found if row.is_control] == ["b", "e"]
    settings = [row.cells[0] for row in found]
    controls = [one.direction and one.direction.control for one in settings]
    assert controls == ["none", "random", "none", None, None, None]
    assert [one.use and one.use.k for one in settings] == [None, None, None, 5, 2, 5]
    assert [one.basis for one in settings] == [*5 * [None], "own_mode"]
    # A random direction takes nothing from its pairs, unless thresholds are fitted on them.
    assert [one.setting.needs.fitted for one in settings] == [False, False, True, False, False, False]
    plain = settings[0].model_dump(include=set(RunSettings.model_fields))
    assert RunSettings.model_validate_json(settings[0].params()).model_dump() == plain


def test_a_run_that_one_question_evaluates_at_the_end_is_the_run_of_the_others_too(config):
    loaded = load_questions(
        {
            "P": questions([{"name": "a"}, {"name": "b", "mix": 0.5}])["Q"],
            "Q": questions([{"name": "c", "final_eval": True}])["Q"],
        },
        config,
    )
    plain, other = loaded["P"].rows
    assert plain.cells == loaded["Q"].rows[0].cells and plain.cells[0].setting.final_eval
    assert not plain.setting.final_eval, "the row itself asks for no evaluation"
    assert not any(cell.setting.final_eval for cell in other.cells)


@pytest.mark.parametrize("given, expected", [(3, (41, 42, 43)), ([7, 9], (7, 9)), ("41,43", (41, 43))])
def test_seeds(config, given, expected):
    assert Config.model_validate(config | {"seeds": given}).seeds == expected


def test_a_row_depends_on_its_preset_and_learning_rate(config):
    base = load_questions(questions([{"name": "a"}]), config)["Q"].cells[0]
    config["grpo"]["lr"] = 0.2
    assert load_questions(questions([{"name": "a"}]), config)["Q"].cells[0].params() != base.params()


def test_one_shared_model_has_one_basis_file_per_seed_of_a_control(config):
    assert Config.model_validate(config).basis_file("random", 42) == "random"
    config["model"] |= {"base": "Qwen/Qwen3-4B", "name": "qwen3-4b"}
    shared = Config.model_validate(config)
    assert shared.model_name(42) == "qwen3-4b"
    assert (shared.basis_file("random", 42), shared.basis_file("own_mode", 42)) == ("random-s42", "own_mode")


def test_how_a_basis_is_used_is_no_part_of_its_file(config):
    knobs = Config.model_validate(config).knobs("v_hack_full").extraction()
    assert knobs["pairs"] == "paper18" and knobs["n_pairs"] == 12 and knobs["tau"] == 0.25
    assert "k" not in knobs and "drop_bottom_frac" not in knobs
