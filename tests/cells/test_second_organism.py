"""config/smollm2.yaml: what is laid over config.yaml for a pretrained model, and what a warm start may stand beside."""

from functools import reduce
from pathlib import Path

import pytest
from broken import ROOT, merge

from projected_grpo.cells.cell import all_cells, load_questions
from projected_grpo.cells.check import load
from projected_grpo.errors import UserError
from projected_grpo.evaluator.kinds import CriticKind, critic_kinds
from projected_grpo.files import read_json
from projected_grpo.measures import numbers
from projected_grpo.model.load import check_digests
from projected_grpo.pages.context import Context
from projected_grpo.pages.needs import traced_rollouts
from projected_grpo.strict_yaml import read_mapping

SECOND, DEMO, TUNING, MODELS = (f"config/smollm2{name}.yaml" for name in ("", "-demo", "-tuning", "-models"))
CRITIC, TRAINED = "config/smollm2-critic.yaml", "config/smollm2-critic-trained.yaml"


def loaded(*paths, **model):
    """The config of these files over config.yaml, and the questions that it names."""
    files = ["config/config.yaml", *paths]
    merged = reduce(merge, [*map(read_mapping, files), {"model": model}])
    config, parsed = load(files, merged)
    return config, load_questions(parsed, config)


@pytest.fixture(autouse=True)
def in_the_root(monkeypatch):
    monkeypatch.chdir(ROOT)


def test_base_teacher_and_pool_are_one_for_all_seeds():
    config, questions = loaded(SECOND)
    assert list(questions) == ["Q10", "Q16", "Q14", "Q18"] and config.models == ["smollm2-q4"]
    cells = all_cells(questions).values()
    assert {cell.model for cell in cells} == {cell.pool for cell in cells} == {"smollm2-q4"}
    assert {cell.seed for cell in cells} == {41, 42, 43, 44, 45}
    assert {cell.training.prompts for cell in cells} == {4}


def test_the_teacher_was_trained_on_the_base_of_the_published_runs():
    folder = Path(loaded(SECOND)[0].model.teacher)
    check_digests(folder)
    published = numbers.read(Path("docs/results/smollm2/runs.csv"))["base"].dropna()
    assert {read_json(folder / "trained_on.json")["base"]} == {*published}


def test_over_models_each_seed_has_its_own_warm_start_teacher_and_pool():
    config, questions = loaded(SECOND, MODELS)
    cells = questions["models"].cells
    own = {f"smollm2-q4-s{seed}" for seed in config.seeds}
    assert {cell.model for cell in cells} == {cell.pool for cell in cells} == own == set(config.models)
    assert all(cell.model.endswith(f"-s{cell.seed}") for cell in cells)
    assert config.basis_file("random", 61) == "random"  # a model of its own needs no name by seed


def test_rankings_need_no_run_of_their_own():
    _, questions = loaded(SECOND)
    plane = {cell.id for cell in questions["Q16"].cells}
    assert {cell.id for cell in questions["Q18"].cells} < plane


def test_the_demos_runs_are_those_of_the_questions():
    config, questions = loaded(SECOND, DEMO)
    cells = [cell.id for cell in questions["look"].cells]
    assert (
        cells == ["vanilla-m0.125-s41", "erase-own_mode-m0.125-s41"] and config.results == "results/smollm2"
    )
    assert set(cells) < {cell.id for cell in loaded(SECOND)[1]["Q10"].cells}


def test_both_critics_are_the_base_and_change_no_run():
    plain = {*all_cells(loaded(SECOND)[1])}
    (shown, own), (trained, others) = loaded(SECOND, CRITIC), loaded(SECOND, CRITIC, TRAINED)
    assert plain <= {*all_cells(own)} and plain <= {*all_cells(others)}
    assert (shown.self_taught.critic, trained.self_taught.critic) == ("local", "trained")
    for config in (shown, trained):
        assert config.self_taught.model is None and config.self_taught.measured <= 200
        assert critic_kinds(config) == (CriticKind(),)
    assert shown.self_taught.cards_in_context > 0 == trained.self_taught.cards_in_context


def test_the_critics_page_reads_the_runs_that_its_critic_saw_whatever_the_seed_of_the_warm_start():
    config, questions = loaded(SECOND, CRITIC, warm={"seed": 7})
    context = Context("self_taught", config, questions)
    (seed,) = context.models.values()  # the rules take `shared_seed`
    assert seed == config.shared_seed == 7
    assert all("-s7/" in path for path in traced_rollouts(context, seed))


def test_training_is_chosen_without_a_projected_arm_on_seeds_of_its_own():
    _, questions = loaded(SECOND, TUNING)
    cells = questions["marks"].cells
    assert {cell.setting.arm for cell in cells} == {"vanilla", "gt_only"} and len(cells) == 24
    assert {cell.seed for cell in cells} == {31}


@pytest.mark.parametrize(
    ("paths", "model", "problem"),
    [
        ([], {"warm": {"examples": 600}}, "model.warm: a warm start, allowed with the base 'small': null"),
        ([SECOND], {"warm": None, "teacher": "small"},
         "model.teacher: 'small', allowed with a given base: a PEFT folder or hub id, or"),
        ([SECOND], {"size": "7B", "teacher": "small"}, "model.size: '7B'; "),
        ([SECOND], {"warm": {"seed": None}},
         "model.teacher: 'config/teachers/smollm2', allowed where each seed has its own warm start: small"),
        ([SECOND], {"warm": {"examples": 0}}, "model.warm.examples: 0, allowed: an integer >= 1"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_one_line(paths, model, problem):
    with pytest.raises(UserError) as error:
        loaded(*paths, **model)
    assert problem in str(error.value)
