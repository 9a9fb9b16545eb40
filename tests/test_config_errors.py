"""Broken configs: each is one line that names file, key path, wrong value and what is allowed."""

import copy
import json
import shutil
from pathlib import Path

import jsonschema
import pytest
import yaml

from projected_grpo.environment.modes import LOOPHOLES
from projected_grpo.errors import UserError
from projected_grpo.experiment import cell as cells
from projected_grpo.experiment.config_check import check, checked_questions
from projected_grpo.experiment.config_schema import load_schema

ROOT = Path(__file__).resolve().parents[1]
DROP = object()


def read(path):
    return yaml.load(path.read_text(), Loader=yaml.CSafeLoader)


CONFIG_YAML, QUESTIONS_YAML = read(ROOT / "config" / "config.yaml"), read(ROOT / "config" / "questions.yaml")


class Folder:
    """A copy of the default config in which single keys can be changed."""

    def __init__(self, path):
        self.path = path
        self.config, self.questions = copy.deepcopy(CONFIG_YAML), copy.deepcopy(QUESTIONS_YAML)
        self.config |= {"questions": str(path / "questions.yaml"), "pairs": str(ROOT / "config" / "pairs")}

    def copy_pairs(self):
        self.config["pairs"] = str(self.path / "pairs")
        shutil.copytree(ROOT / "config" / "pairs", self.path / "pairs")

    def set(self, file, key, value):
        target = getattr(self, file)
        *parents, last = key
        for part in parents:
            target = target[part]
        if value is DROP:
            del target[last]
        elif isinstance(target, list) and last == len(target):
            target.append(value)
        else:
            target[last] = value

    def check(self):
        text = yaml.dump(self.config, Dumper=yaml.CSafeDumper, sort_keys=False)
        (self.path / "config.yaml").write_text(text)
        check([self.path / "config.yaml"], self.config, self.questions)

    def error(self):
        with pytest.raises(UserError) as caught:
            self.check()
        message = str(caught.value)
        assert "\n" not in message
        return message


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


def test_the_default_is_sound(folder):
    folder.check()


@pytest.mark.parametrize("name", ["smoke", "qwen3-4b", "server"])
def test_the_other_configs_are_sound(name, monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    paths = [ROOT / "config" / "config.yaml", ROOT / "config" / f"{name}.yaml"]
    config = _merge(*(read(path) for path in paths))
    if config["model"]["problems"] != "generated":
        config["model"]["problems"] = str(tmp_path / "rows.jsonl")
        (tmp_path / "rows.jsonl").touch()
    check(paths, config, read(ROOT / config["questions"]))


def _merge(base, over):
    merged = copy.deepcopy(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merge(merged[key], value) if both else value
    return merged


# (key path to change, new value, key path in the message, the rest of the message)
CONFIG = [
    (["seeds"], 0, "seeds: 0, allowed: an integer >= 1"),
    (["seeds"], 5.0, "seeds: 5.0, allowed: an integer >= 1"),
    (["seeds"], [], "seeds: [], allowed: a non-empty list of different integers >= 0"),
    (["seeds"], [41, "x"], "seeds[1]: 'x', allowed: an integer >= 0"),
    (["seeds"], [41, 41], "seeds: [41, 41], allowed: a non-empty list of different integers >= 0"),
    (["seeds"], "41,41", "seeds: '41,41', allowed: each seed once"),
    (["seeds"], "41-45", "seeds: '41-45', allowed: numbers with commas between them"),
    (["seeds"], True, "seeds: true, allowed: an integer >= 1"),
    (["device"], "gpu", "device: 'gpu'; allowed: cpu, cuda"),
    (["dtype"], "bfloat", "dtype: 'bfloat'; allowed: float32, bfloat16; did you mean 'bfloat16'?"),
    (["threads"], "2", "threads: '2', allowed: an integer >= 1"),
    (["threads"], True, "threads: true, allowed: an integer >= 1"),
    (["sandbox"], "none", "sandbox: 'none'; allowed: strong, weak"),
    (
        ["tracker"],
        "tensorbord",
        "tracker: 'tensorbord'; allowed: none, tensorboard; did you mean 'tensorboard'?",
    ),
    (["results"], "my results", "results: 'my results', allowed: "),
    (["treads"], 1, "treads: unknown key; allowed: results, seeds, .*; did you mean 'threads'?"),
    (["grpo", "lrr"], 0.1, "grpo.lrr: unknown key; allowed: max_new, .*; did you mean 'lr'?"),
    (["grpo", "lr"], DROP, "grpo.lr: missing; required: max_new, prompts, lr"),
    (["grpo"], DROP, "grpo: missing; required: results, seeds"),
    (["grpo"], 3, "grpo: 3, allowed: a mapping"),
    (["grpo", "lr"], 0, "grpo.lr: 0, allowed: a number > 0"),
    (["grpo", "lr"], "3e-3", "grpo.lr: '3e-3', allowed: a number > 0"),
    (["grpo", "lr"], None, "grpo.lr: null, allowed: a number > 0"),
    (
        ["grpo", "betas"],
        [0.5],
        "grpo.betas: [0.5], allowed: a non-empty list of two of: numbers >= 0 and < 1",
    ),
    (["grpo", "betas"], [0.5, 1.0], "grpo.betas[1]: 1.0, allowed: a number >= 0 and < 1"),
    (["grpo", "clip"], -1, "grpo.clip: -1, allowed: a number > 0 or null"),
    (["grpo", "warmup"], 10, "grpo.warmup: 10, allowed: a number >= 0 and <= 1"),
    (["grpo", "prompts"], 1.5, "grpo.prompts: 1.5, allowed: an integer >= 1"),
    (["grpo", "presets", "fast", "steps"], 0, "grpo.presets.fast.steps: 0, allowed: an integer >= 1"),
    (["grpo", "presets", "fast", "group"], 1, "grpo.presets.fast.group: 1, allowed: an integer >= 2"),
    (
        ["grpo", "presets", "fast", "grup"],
        4,
        "grpo.presets.fast.grup: unknown key; .*; did you mean 'group'?",
    ),
    (
        ["grpo", "presets", "fast", "group"],
        {"half": 4},
        "grpo.presets.fast.group.half: 'half' as a name, allowed: ",
    ),
    (
        ["pool", "modes"],
        ["run_test"],
        "pool.modes[0]: 'run_test'; allowed: run_tests, .*; did you mean 'run_tests'?",
    ),
    (["pool", "modes"], [], "pool.modes: [], allowed: a non-empty list of different run_tests, sentinel"),
    (["pool", "samples"], -1, "pool.samples: -1, allowed: an integer >= 1"),
    (["model", "name"], "my model", "model.name: 'my model', allowed: "),
    (
        ["model", "base"],
        "/nowhere/model",
        "model.base: '/nowhere/model' is no folder, allowed: small, a Hugging Face",
    ),
    (["model", "teacher"], "org/lora", "model.teacher: 'org/lora', allowed with the base 'small': small"),
    (["model", "problems"], "rows.jsonl", "model.problems: 'rows.jsonl' is no file, allowed: generated"),
    (
        ["probe", "basis"],
        "v_hack_ful",
        "probe.basis: 'v_hack_ful' is no basis and no pair set; allowed: .*'v_hack_full'?",
    ),
    (["probe", "compare"], ["randon"], "probe.compare[0]: 'randon' is no basis .*; did you mean 'random'?"),
    (
        ["probe", "mode"],
        "exit_code",
        "probe.mode: 'exit_code' is not in pool.modes; allowed: run_tests, sentinel",
    ),
    (["probe", "pools"], {"a/b": {}}, "probe.pools.a/b: 'a/b' as a name, allowed: letters, digits"),
    (
        ["probe", "pools"],
        {"mine": {"folder": "x"}},
        "probe.pools.mine.model: missing; required: folder, model",
    ),
    (
        ["probe", "pools"],
        {"mine": {"folder": "/nowhere", "model": "small-s41"}},
        "probe.pools.mine.folder: '/nowhere' has none, allowed: a folder of JSON-lines files",
    ),
    (
        ["probe", "pools"],
        {"mine": {"folder": "/nowhere", "model": "small-s4"}},
        "probe.pools.mine.model: 'small-s4' is no replication; allowed: .*; did you mean 'small-s45'?",
    ),
    (
        ["probe", "pools"],
        {"small-s42": {"folder": "/nowhere", "model": "small-s41"}},
        "probe.pools.small-s42: 'small-s42' is a replication's own pool, allowed: another name",
    ),
    (["basis", "method"], "pca", "basis.method: 'pca'; allowed: svd, mean_diff"),
    (["basis", "control"], "randon", "basis.control: 'randon'; .*; did you mean 'random'?"),
    (["basis", "tau"], 1.5, "basis.tau: 1.5, allowed: a number >= 0 and <= 1"),
    (["basis", "k"], 13, "basis.k: 13, allowed: 1 to 5, top_k, the axes stored (basis 'v_hack_full')"),
    (["basis", "n_pairs"], 40, "basis.n_pairs: 40, allowed: 1 to 18, the pairs in "),
    (
        ["bases", "mine"],
        {"pears": "own_mode"},
        "bases.mine.pears: unknown key; allowed: pairs, .*; did you mean 'pairs'?",
    ),
    (
        ["bases", "mine"],
        {"pairs": "own_mod"},
        "bases.mine.pairs: no pair set 'own_mod'; .*; did you mean 'own_mode'?",
    ),
    (["bases", "mine"], {}, "bases.mine.pairs: no pair set 'mine'; allowed: "),
    (["bases", "my basis"], {"pairs": "moral"}, "bases.my basis: 'my basis' as a name, allowed: "),
    (
        ["bases", "v_hack_full", "n_heldout"],
        12,
        "bases.v_hack_full.n_heldout: 12, allowed: 0 to 11, less than n_pairs",
    ),
    (
        ["bases", "v_hack_full", "n_pairs"],
        19,
        "bases.v_hack_full.n_pairs: 19, allowed: 1 to 18, the pairs in ",
    ),
    (["bases", "v_hack_full", "k"], 6, "bases.v_hack_full.k: 6, allowed: 1 to 5, top_k, the axes stored"),
    (
        ["bases", "own_mode_pairs6", "top_k"],
        7,
        "bases.own_mode_pairs6.top_k: 7, allowed: 1 to 6, the pairs used",
    ),
    (
        ["bases", "own_mode_meandiff", "k"],
        5,
        "bases.own_mode_meandiff.k: 5, allowed: 1 to 1, all that mean_diff has",
    ),
    (
        ["bases", "known_not_sentinel", "without_tag"],
        "sentinal",
        "bases.known_not_sentinel.without_tag: 'sentinal' is no tag of .*; did you mean 'sentinel'?",
    ),
    (
        ["bases", "known_not_sentinel", "n_pairs"],
        30,
        "bases.known_not_sentinel.n_pairs: 30, allowed: 1 to 25, the pairs in .*own_mode34.yaml without tag sentinel",
    ),
]


def matches(message, expected):
    """Whether the parts of `expected` (separated by `.*`) stand in `message` in this order."""
    place = 0
    for part in expected.split(".*"):
        found = message.find(part, place)
        if found < 0:
            return False
        place = found + len(part)
    return True


@pytest.mark.parametrize("key, value, expected", CONFIG, ids=lambda x: None)
def test_broken_config(folder, key, value, expected):
    folder.set("config", key, value)
    message = folder.error()
    assert message.startswith(f"{folder.path / 'config.yaml'}: ")
    assert matches(message.removeprefix(f"{folder.path / 'config.yaml'}: "), expected), message


QUESTIONS = [
    (
        ["Q10", "rows", 1, "basis"],
        "own_mod",
        "Q10.rows[1].basis: 'own_mod' is no basis and no pair set; .*'own_mode'?",
    ),
    (["Q10", "rows", 1, "basis"], DROP, "Q10.rows[1].basis: missing, arm 'erase' needs one of: "),
    (
        ["Q10", "rows", 1, "arm"],
        DROP,
        "Q10.rows[1].basis: 'own_mode' with arm vanilla, allowed: none, or `measure: true`",
    ),
    (
        ["Q10", "rows", 1, "arm"],
        "earse",
        "Q10.rows[1].arm: 'earse'; allowed: vanilla, erase, route; did you mean 'erase'?",
    ),
    (["Q10", "rows", 1, "measure"], True, "Q10.rows[1].measure: true with arm 'erase', allowed: arm vanilla"),
    (["Q10", "rows", 0, "measure"], True, "Q10.rows[0].basis: missing, measure needs one of: "),
    (
        ["Q10", "rows", 0, "refresh"],
        2,
        "Q10.rows[0].refresh: 2 on a row without a basis, allowed: only beside a basis",
    ),
    (
        ["Q3", "rows", 2, "gate"],
        "nogate",
        "Q3.rows[2].gate: 'nogate'; allowed: one_sided, .*; did you mean 'no_gate'?",
    ),
    (["Q15", "rows", 1, "space"], "updates", "Q15.rows[1].space: 'updates'; .*; did you mean 'update'?"),
    (
        ["Q10", "rows", 1, "refrsh"],
        2,
        "Q10.rows[1].refrsh: unknown key; allowed: name, .*; did you mean 'refresh'?",
    ),
    (["Q10", "rows", 1, "refresh"], -1, "Q10.rows[1].refresh: -1, allowed: an integer >= 0"),
    (["Q10", "rows", 1, "overshoot"], "big", "Q10.rows[1].overshoot: 'big', allowed: a number > 0"),
    (["Q10", "rows", 1, "k"], 13, "Q10.rows[1].k: 13, allowed: 1 to 12, the axes of the basis 'own_mode'"),
    (
        ["Q4", "rows", 2, "k"],
        2,
        "Q4.rows[2].k: 2, allowed: 1 to 1, the axes of the basis 'v_hack_full_meandiff'",
    ),
    (
        ["Q10", "rows", 1, "adapter"],
        "lora",
        "Q10.rows[1].adapter: 'lora', allowed: antipasto, as the basis 'own_mode'",
    ),
    (["Q10", "rows", 1, "name"], DROP, "Q10.rows[1].name: missing; required: name"),
    (
        ["Q10", "rows", 2, "name"],
        "own_mode",
        "Q10.rows[2].name: 'own_mode' is rows[1]'s name, allowed: each once",
    ),
    (
        ["Q10", "rows", 2, "name"],
        "a|b",
        "Q10.rows[2].name: 'a|b', allowed: one line without |, as it stands in the table",
    ),
    (
        ["Q10", "baseline"],
        "vanila",
        "Q10.baseline: no row 'vanila'; allowed: vanilla, .*; did you mean 'vanilla'?",
    ),
    (
        ["Q6", "rows", 3, "baseline"],
        "vanilla mix .5",
        "Q6.rows[3].baseline: no row 'vanilla mix .5'; .*'vanilla mix 0.5'?",
    ),
    (
        ["Q3", "rows", 2, "against"],
        "onesided",
        "Q3.rows[2].against: no row 'onesided'; allowed: vanilla, .*; did you mean 'one_sided'?",
    ),
    (["Q9", "primary"], "solved", "Q9.primary: 'solved'; allowed: hack, solve; did you mean 'solve'?"),
    (["Q10", "basline"], "vanilla", "Q10.basline: unknown key; .*; did you mean 'baseline'?"),
    (["Q10", "title"], DROP, "Q10.title: missing; required: title, asks, rows"),
    (["Q10", "rows"], [], "Q10.rows: [], allowed: a non-empty list of mappings"),
    (["Q10", "rows"], {"a": 1}, "Q10.rows: {'a': 1}, allowed: a non-empty list of mappings"),
    (["Q10", "kind"], "tabel", "Q10.kind: 'tabel'; allowed: table, aa, probe; did you mean 'table'?"),
    (
        ["Q-16"],
        {"title": "t", "asks": "a", "rows": [{"name": "v"}]},
        "Q-16: 'Q-16' as a name, allowed: ",
    ),
    (["Q16"], None, "Q16: null, allowed: a mapping"),
    (
        ["Q1", "rows", 0, "mix"],
        0.3,
        "Q1.rows[0].mix: 0.3 has no group size in preset 'fast', allowed: 0, 0.125, 0.25, 0.5",
    ),
    (["Q1", "rows", 0, "mix"], 50, "Q1.rows[0].mix: 50, allowed: a number >= 0 and <= 1"),
    (["Q2", "settings", "mix"], 0.3, "Q2.settings.mix: 0.3 has no group size in preset 'fast'"),
    (
        ["Q11", "settings", "preset"],
        "longer",
        "Q11.settings.preset: no preset 'longer'; .*; did you mean 'long'?",
    ),
    (["Q11", "settings", "prest"], "long", "Q11.settings.prest: unknown key; .*; did you mean 'preset'?"),
    (
        ["Q10", "rows", 0, "modes"],
        ["exit_code"],
        "Q10.rows[0].modes: 'exit_code' is not in pool.modes; allowed: run_tests",
    ),
    (
        ["Q10", "rows", 0, "modes"],
        ["sentinal"],
        "Q10.rows[0].modes[0]: 'sentinal'; .*; did you mean 'sentinel'?",
    ),
    (
        ["Q14", "rows", 0, "held_out_mode"],
        "run_test",
        "Q14.rows[0].held_out_mode: 'run_test'; .*'run_tests'?",
    ),
    (
        ["Q14", "rows", 0, "held_out_mode"],
        "exit_code",
        "Q14.rows[0].held_out_mode: 'exit_code' is no mode of the row; ",
    ),
    (["aa", "rows", 1, "stream"], "one", "aa.rows[1].stream: 'one', allowed: an integer >= 0"),
    (["Q12", "settings", "final_eval"], "yes", "Q12.settings.final_eval: 'yes', allowed: true or false"),
]


@pytest.mark.parametrize("key, value, expected", QUESTIONS, ids=lambda x: None)
def test_broken_questions(folder, key, value, expected):
    folder.set("questions", key, value)
    message = folder.error()
    assert message.startswith(f"{folder.path / 'questions.yaml'}: ")
    assert matches(message.removeprefix(f"{folder.path / 'questions.yaml'}: "), expected), message


def test_there_are_at_least_forty():
    assert len(CONFIG) + len(QUESTIONS) >= 40


PAIR = "- {prompt: p, hack: h, clean: c}\n"
PAIR_FILES = [
    (PAIR.replace(", clean: c", ""), "pair 1: key 'clean' is missing; required: prompt, hack, clean"),
    (
        PAIR + "- {prompt: p, hack: '', clean: c}",
        "pair 2: key 'hack' is empty, allowed: text that is not blank",
    ),
    (
        PAIR.replace("hack:", "hak:"),
        "pair 1: unknown key 'hak'; allowed: prompt, hack, clean, tags; did you mean 'hack'?",
    ),
    ("prompt: p", "found a mapping, allowed: a non-empty list of pairs"),
    ("- [", "not YAML"),
]


@pytest.mark.parametrize("text, expected", PAIR_FILES)
def test_broken_pair_file(folder, text, expected):
    folder.copy_pairs()
    path = folder.path / "pairs" / "moral.yaml"
    path.write_text(text)
    message = folder.error()
    assert message.startswith(str(path))
    assert expected in message


def test_pair_sets_that_the_pipeline_writes_need_no_file(folder):
    for name in ("self_taught", "self_taught_code"):
        folder.questions["Q10"]["rows"].append({"name": f"own {name}", "arm": "erase", "basis": name})
    folder.config["bases"]["taught"] = {"pairs": "self_taught", "k": 2}
    folder.check()


def test_too_few_pairs_in_a_set_that_a_row_uses(folder):
    folder.copy_pairs()
    (folder.path / "pairs" / "moral.yaml").write_text(PAIR)
    assert matches(
        folder.error(),
        "config.yaml: basis.n_pairs: 18, allowed: 1 to 1, the pairs in .*moral.yaml (basis 'moral')",
    )


def test_a_pair_set_that_nothing_uses_is_not_read(folder):
    folder.copy_pairs()
    (folder.path / "pairs" / "draft.yaml").write_text("not finished")
    folder.check()


def test_first_of_several_pair_folders_counts(folder):
    folder.copy_pairs()
    extra = folder.path / "extra"
    extra.mkdir()
    (extra / "moral.yaml").write_text("[]")
    folder.config["pairs"] = [folder.config["pairs"], str(extra)]
    folder.check()
    folder.config["pairs"] = folder.config["pairs"][::-1]
    assert folder.error().startswith(str(extra / "moral.yaml"))


@pytest.mark.parametrize(
    "files, expected",
    [
        (
            [],
            "is a folder without config.json, allowed: small, a Hugging Face checkpoint folder or a hub id",
        ),
        (["config.json"], "is a folder without model.safetensors"),
        (["config.json", "model.safetensors"], "is a folder without tokenizer.json"),
    ],
)
def test_base_folder_that_is_no_checkpoint(folder, files, expected):
    base = folder.path / "base"
    base.mkdir()
    for name in files:
        (base / name).touch()
    folder.config["model"] |= {"base": str(base), "teacher": "org/lora"}
    assert f"config.yaml: model.base: '{base}' {expected}" in folder.error()


def test_teacher_of_a_given_base(folder):
    folder.config["model"] |= {"base": "org/model"}
    assert "model.teacher: 'small', allowed with a given base: a PEFT folder or hub id" in folder.error()
    folder.config["model"]["teacher"] = str(ROOT / "config")
    assert "config' is a folder without adapter_config.json, allowed: small, a PEFT folder" in folder.error()
    folder.config["model"]["teacher"] = "justaname"
    assert "model.teacher: 'justaname' is no folder" in folder.error()
    folder.config["model"]["teacher"] = "org/lora"
    folder.check()


def test_the_layer_that_gives_the_value_is_named(folder):
    folder.check()
    over = folder.path / "over.yaml"
    over.write_text("grpo: {lr: null}\nthreads: 1\n")
    config = _merge(folder.config, {"grpo": {"lr": None}})
    paths = [folder.path / "config.yaml", over]
    with pytest.raises(UserError, match=r"over.yaml: grpo.lr: null, allowed: a number > 0"):
        check(paths, config, folder.questions)
    with pytest.raises(UserError, match=r"^--config: threads: 0, allowed: an integer >= 1"):
        check(paths, folder.config | {"threads": 0}, folder.questions)
    over.write_text("threads: 1\nthreads: 2\n")
    with pytest.raises(UserError, match=r"over.yaml:2: not YAML \(the key 'threads' is given twice\)"):
        check(paths, folder.config, folder.questions)
    over.write_text("- a\n")
    with pytest.raises(UserError, match=r"over.yaml: found \['a'\], allowed: a mapping"):
        check(paths, folder.config, folder.questions)


def test_questions_file_is_read_after_the_config_is_sound(folder):
    folder.check()
    paths, questions = [folder.path / "config.yaml"], folder.path / "questions.yaml"
    with pytest.raises(UserError, match=r"questions.yaml: no such file"):
        checked_questions(paths, folder.config)
    with pytest.raises(UserError, match=r"--config: questions: 3, allowed: text that is not empty"):
        checked_questions(paths, folder.config | {"questions": 3})
    questions.write_text("Q1: [\n")
    with pytest.raises(UserError, match=r"questions.yaml:2: not YAML"):
        checked_questions(paths, folder.config)
    questions.write_text("Q1: {}\nQ1: {}\n")
    with pytest.raises(UserError, match=r"questions.yaml:2: not YAML \(the key 'Q1' is given twice\)"):
        checked_questions(paths, folder.config)
    questions.write_text((ROOT / "config" / "questions.yaml").read_text())
    assert checked_questions(paths, folder.config) == QUESTIONS_YAML


def test_schemas_say_what_the_code_says():
    config, questions = load_schema("config"), load_schema("questions")
    for schema in (config, questions, load_schema("pairs")):
        jsonschema.Draft202012Validator.check_schema(schema)
    assert config["$defs"]["mode"]["enum"] == list(LOOPHOLES) == questions["$defs"]["mode"]["enum"]
    assert questions["$defs"]["held_out_mode"]["enum"] == [*LOOPHOLES, None]
    for name, choices in cells.CHOICES.items():
        assert questions["$defs"][name]["enum"] == list(choices)
    settings = set(cells.Setting.__dataclass_fields__)
    question = questions["additionalProperties"]["properties"]
    assert set(question["settings"]["properties"]) == settings
    assert set(question["rows"]["items"]["properties"]) == settings | {"name", *cells.OTHER_ROWS}
    assert set(config["properties"]["bases"]["additionalProperties"]["properties"]) == {
        *config["properties"]["basis"]["properties"],
        "pairs",
        "without_tag",
    }
    assert set(cells.SEEDED_CONTROLS) | {"none"} == set(config["$defs"]["knob"]["control"]["enum"])


def test_every_object_of_the_schemas_is_closed():
    def walk(value):
        if isinstance(value, dict):
            if "properties" in value and value.get("type") == "object":
                assert "additionalProperties" in value
            for part in value.values():
                walk(part)
        elif isinstance(value, list):
            for part in value:
                walk(part)

    for name in ("config", "questions", "pairs"):
        walk(load_schema(name))


@pytest.mark.parametrize("path", sorted((ROOT / "config").glob("*.yaml")), ids=lambda path: path.name)
def test_editors_find_the_schema(path):
    first = path.read_text().splitlines()[0]
    schema = path.parent / first.removeprefix("# yaml-language-server: $schema=")
    assert json.loads(schema.read_text())["$schema"].endswith("2020-12/schema")
