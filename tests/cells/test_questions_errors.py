"""Broken questions: each is one line that names file, key path, wrong value and what is allowed."""

import pytest
import yaml
from broken import DROP, QUESTIONS_YAML, put

from projected_grpo.cells.check import load
from projected_grpo.errors import UserError

QUESTIONS = [
    (
        "Q10.rows[1].basis",
        "own_mod",
        ": 'own_mod' is no basis and no pair set; allowed: own_mode, .* more; .*'own_mode'?",
    ),
    ("Q10.rows[1].basis", DROP, ": missing, arm 'erase' needs one of: "),
    (
        "Q10.rows[1].arm",
        DROP,
        "Q10.rows[1].basis: 'own_mode' with arm 'vanilla', allowed beside arm absorb, erase, measure, route",
    ),
    ("Q10.rows[1].arm", "earse", ": 'earse'; allowed: absorb, .*vanilla; did you mean 'erase'?"),
    ("Q10.rows[1].measure", True, ": unknown key; allowed: "),
    ("Q10.rows[0].arm", "measure", "Q10.rows[0].basis: missing, arm 'measure' needs one of: "),
    ("Q10.rows[0].refresh", 2, ": 2 with arm 'vanilla', allowed beside arm absorb, erase, measure, route"),
    ("Q3.rows[2].gate", "nogate", ": 'nogate'; allowed: one_sided, .*; did you mean 'no_gate'?"),
    ("Q15.rows[1].space", "updates", ": 'updates'; .*; did you mean 'update'?"),
    ("Q10.rows[1].refrsh", 2, ": unknown key; allowed: .*; did you mean 'refresh'?"),
    ("Q10.rows[1].refresh", -1, ": -1, allowed: an integer >= 0"),
    ("Q10.rows[1].overshoot", "big", ": 'big', allowed: a number > 0"),
    ("Q2.kind", "probe", ": 'probe', allowed: table, plane, trend, aa; a probe is one of R5, R6, R7, Q18"),
    (
        "Q10.rows[1]",
        {"name": "d", "arm": "advantage", "direction": "own_mode", "layer": 4},
        ".layer: 4, allowed: 0 to 3, the layers of the small model, or null",
    ),
    ("Q18.rows[0].adapter", "lora", ": 'lora', allowed in Q18: antipasto"),
    (
        "Q18.rows[0].arm",
        "inoculate",
        ": 'inoculate', allowed in Q18: an arm that samples with delta_S alone, under the plain prompt",
    ),
    (
        "Q16.rows[13].variant",
        "leak",
        ": 'leak', allowed with the monitor 'critic': null, the critic has learned from runs of "
        "the default model",
    ),
    ("Q10.rows[1].k", 13, ": 13, allowed: 1 to 12, the axes of the basis 'own_mode'"),
    ("Q4.rows[2].k", 2, ": 2, allowed: 1 to 1, the axes of the basis 'v_hack_full_meandiff'"),
    ("Q10.rows[1].adapter", "lora", ": 'lora', allowed: antipasto, as the basis 'own_mode'"),
    ("Q10.rows[1].name", DROP, ": missing; required: name"),
    ("Q10.rows[2].name", "own_mode", ": 'own_mode' is rows[1]'s name, allowed: each once"),
    ("Q10.rows[2].name", "a|b", ": 'a|b', allowed: one line without |, as it stands in the table"),
    ("Q10.rows[2].name", "a\u2028b", ": 'a\\u2028b', allowed: one line without |"),
    ("Q10.baseline", "vanila", ": no row 'vanila'; allowed: vanilla, .*; did you mean 'vanilla'?"),
    ("Q6.rows[3].baseline", "vanilla mix .5", ": no row 'vanilla mix .5'; .*'vanilla mix 0.5'?"),
    (
        "Q3.rows[2].against",
        "onesided",
        ": no row 'onesided'; allowed: vanilla, .*; did you mean 'one_sided'?",
    ),
    (
        "Q14.matrix.columns",
        ["sentinel", "stdout"],
        "Q14.matrix.name: no row 'run_tests alone, without stdout'; allowed: .*",
    ),
    (
        "Q10.says[0].contrast",
        "against",
        ": 'against' of 'own_mode'; allowed: baseline, random, place, itself",
    ),
    ("Q10.says[0].effect", '{{ of("own_mod").mean }}', ": no row 'own_mod'; allowed: .*'own_mode'?"),
    ("Q10.says[0].effect", "{{ delta", ": '{{ delta', allowed: a sentence in Jinja "),
    ("Q10.says[0].effect", "{{ of(own).mean }}", ": '{{ of.*, allowed: `of('ROW')`, its words in quotes"),
    ("Q10.says[0].effect", "{{ of().mean }}", ": '{{ of.*, allowed: `of('ROW')`, its words in quotes"),
    ("Q6.says[0].row", "few", "Q6.says[0].row: no row 'few'; allowed: "),
    (
        "Q10.rows[1]",
        {"name": "own_mode"},
        ".baseline: 'vanilla' has the same runs, allowed: a row of other settings",
    ),
    ("Q10.rows[0].against", "vanilla", ": 'vanilla' has the same runs, allowed: a row of other settings"),
    (
        "Q9.primary",
        "solved",
        ": 'solved'; allowed: hack, solve, known_hack, auroc_last; did you mean 'solve'?",
    ),
    ("Q10.basline", "vanilla", ": unknown key; .*; did you mean 'baseline'?"),
    ("Q10.title", DROP, ": missing; required: title, asks, rows"),
    ("Q10.rows", [], ": [], allowed: a non-empty list of mappings"),
    ("Q10.rows", {"a": 1}, ": {'a': 1}, allowed: a non-empty list of mappings"),
    ("Q10.kind", "tabel", ": 'tabel'; allowed: table, plane, trend, aa, probe; did you mean 'table'?"),
    ("Q-16", {"title": "t", "asks": "a", "rows": [{"name": "v"}]}, ": 'Q-16' as a name, allowed: "),
    ("Q16", None, ": null, allowed: a mapping"),
    ("Q1.rows[0].mix", 0.3, ": 0.3 has no group size in preset 'fast', allowed: 0, 0.125, 0.25, 0.5"),
    ("Q1.rows[0].mix", 50, ": 50, allowed: a number >= 0 and < 1"),
    ("Q2.settings.mix", 0.3, ": 0.3 has no group size in preset 'fast'"),
    ("Q11.settings.preset", "longer", ": no preset 'longer'; .*; did you mean 'long'?"),
    ("Q11.settings.prest", "long", ": unknown key; .*; did you mean 'preset'?"),
    ("Q10.rows[0].modes", ["exit_code"], ": 'exit_code' is not in pool.modes; allowed: run_tests"),
    ("Q10.rows[0].modes", ["sentinal"], "[0]: 'sentinal'; .*; did you mean 'sentinel'?"),
    ("Q14.rows[0].held_out_mode", "run_test", ": 'run_test'; .*'run_tests'?"),
    ("Q14.rows[0].held_out_mode", "exit_code", ": 'exit_code' is no mode of the row; "),
    ("aa.rows[1].stream", 1 << 32, ": 4294967296, allowed: an integer >= 0 and <= "),
    ("aa.kind", "table", ": 'table', allowed: aa, the page of the pipeline against itself"),
    ("R7.kind", "table", ": 'table', allowed: probe, as R7 has a page of its own"),
    (
        "R7.rows",
        [{"name": "vanilla", "arm": "erase", "basis": "own_mode"}],
        ": loss of the rows' bases: nll, allowed: ",
    ),
    *(
        (
            name,
            {"title": "t", "asks": "a", "rows": [{"name": "v"}]},
            ": a page or figure of this name is made",
        )
        for name in ("substrate", "self_taught", "diagonal", "uat", "Overview", "families")
    ),
    (
        "q10",
        {"title": "t", "asks": "a", "rows": [{"name": "v"}]},
        "Q10: differs from q10 in letter case alone",
    ),
    ("Q5.rows[2].refresh", 20, ": 20, allowed: 0 to 19, less than the steps of the run"),
    ("Q1.rows[0].lr", 1e300, ": 1e+300, allowed: a number > 0 and <= 100"),
    ("aa.rows[1].stream", "one", ": 'one', allowed: an integer >= 0"),
    *(
        ("Q10.rows[1]", {"name": "own_mode", **row}, f".{expected}")
        for row, expected in (
            ({"arm": "advantage"}, "direction: missing, arm 'advantage' needs one of: "),
            ({"arm": "caft", "direction": "own_mod"}, "direction: 'own_mod' is no basis and no pair set; "),
            (
                {"arm": "steer", "direction": "shuffled"},
                "direction: a basis with control shuffled, allowed: none, random",
            ),
            (
                {"arm": "screen", "monitor": "direction"},
                "direction: null, allowed: a basis with monitor direction",
            ),
            (
                {"arm": "route_labels", "monitor": "two_levers", "direction": "own_mode"},
                "direction: 'own_mode', allowed: null with monitor two_levers",
            ),
            (
                {"arm": "erase", "basis": "own_mode", "gate": "no_gate", "sign": -1},
                "sign: -1, allowed: 1 with gate no_gate, which does not see the sign",
            ),
            (
                {"arm": "route", "basis": "own_mode", "space": "update", "preserve_magnitude": True},
                "space: 'update', allowed: gradient with preserve_magnitude: the parts must add up",
            ),
            (
                {"arm": "trusted", "k": 21},
                "k: 21, allowed with arm 'trusted': 1 to 20, steps of the clean run",
            ),
            ({"arm": "trusted", "adapter": "lora"}, "adapter: 'lora', allowed with arm 'trusted': antipasto"),
        )
    ),
    (
        "Q13.rows[1].against",
        "random V k=5",
        ": 'random V k=5' and this row differ in k, allowed: a row of random axes and",
    ),
    (
        "Q3.rows[13].against",
        "own_mode one_sided",
        ": 'own_mode one_sided' and this row differ in gate, allowed: a row of random",
    ),
    (
        "Q5.rows[4].against",
        "random V refresh-5",
        ": 'random V refresh-5' and this row differ in refresh, allowed: a row of random",
    ),
    (
        "Q10.rows[1].place_in",
        "cod",
        ": no population 'cod' in Q10; allowed: code, text; did you mean 'code'?",
    ),
    ("Q10.rows[0].place_in", "code", ": 'code', allowed for a row without baseline: null"),
    (
        "Q10.rows[1].gate",
        "no_gate",
        "Q10.rows[1].place_in: 'code placebo 1' and this row differ in gate, allowed: in the basis alone",
    ),
    (
        "Q10.rows[14].place_in",
        "code",
        ": 'code placebo 1' and this row differ in modes, baseline, allowed: in the basis",
    ),
    ("Q10.rows[25].place_in", "code", ": 'code', allowed for a placebo of a population: null"),
    (
        "Q14.rows[1].baseline",
        DROP,
        "Q14.rows[1].pooled: 'known modes, all folds', allowed: one baseline, or one `pooled` of the rows' baselines (",
    ),
    (
        "Q14.rows[0].pooled",
        "vanilla without run_tests",
        ": 'vanilla without run_tests' is a row's name, allowed: another one",
    ),
    ("Q12.settings.final_eval", "yes", ": 'yes', allowed: true or false"),
]


@pytest.mark.parametrize("key, value, expected", QUESTIONS, ids=lambda x: None)
def test_broken_questions(folder, key, value, expected):
    folder.check_line("questions", key, value, expected)


def test_a_mix_that_leaves_the_teacher_no_row_is_refused(folder):
    folder.config["grpo"]["presets"]["fast"]["group"] = 4
    message = folder.error()
    assert "mix 0 and 0.125" in message and "'fast' is no row" in message
    folder.config["grpo"]["presets"]["small"] = {"steps": 2, "group": 4}
    folder.config["grpo"]["presets"]["fast"]["group"] = 8
    put(folder.questions, "Q10.rows[0].preset", "small")
    expected = "Q10.rows[0].mix: 0.125 of the group of 4 in preset 'small' is no row, allowed: 0, or at least"
    assert expected in folder.error()
    put(folder.questions, "Q10.rows[0].mix", 0.25)
    folder.check()


def test_a_step_has_no_more_prompts_than_the_row_has_problems(folder):
    folder.config["grpo"]["prompts"] = 81
    assert "'fast' has 81 prompts a step, allowed: 1 to 80, the problems of the row" in folder.error()
    folder.config["grpo"]["prompts"] = 21
    folder.check()
    put(folder.questions, "Q10.rows[0].modes", ["sentinel"])
    folder.check()  # as many, all of that loophole


def test_questions_file_is_read_after_the_config_is_sound(folder):
    folder.check()
    paths, questions = [folder.path / "config.yaml"], folder.path / "questions.yaml"
    questions.unlink()
    with pytest.raises(UserError, match=r"questions.yaml: no such file"):
        load(paths, folder.config)
    with pytest.raises(UserError, match=r"--config: questions: 3, allowed: text that is not empty"):
        load(paths, folder.config | {"questions": 3})
    questions.write_text("Q1: [\n")
    with pytest.raises(UserError, match=r"questions.yaml:2: not YAML"):
        load(paths, folder.config)
    questions.write_text("Q1: {}\nQ1: {}\n")
    with pytest.raises(UserError, match=r"questions.yaml:2: not YAML \(the key 'Q1' is given twice\)"):
        load(paths, folder.config)
    questions.write_text(yaml.safe_dump(QUESTIONS_YAML))
    config, parsed = load(paths, folder.config | {"seeds": 5})
    assert parsed == QUESTIONS_YAML and config.seeds == (41, 42, 43, 44, 45)
