"""Locks and conda environments: one set of versions, and all that the rules' scripts import."""

import re
import sys
import tomllib
from importlib.metadata import packages_distributions, version
from pathlib import Path

import pytest
import yaml

from projected_grpo import fingerprint

HERE = Path(__file__).resolve().parents[2]
ENVS = sorted(path.name for path in (HERE / "envs").glob("*.yaml"))


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def lock(kind):
    """{distribution: (version, number of hashes)} of a lock."""
    text = (HERE / "envs" / f"lock-{kind}.txt").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {
        normal(line.split("==")[0]): (line.split("==")[1].split()[0], line.count("--hash=sha256:"))
        for line in lines
    }


def pins(name):
    """{distribution: version} of a conda environment's pip part."""
    parts = yaml.safe_load((HERE / "envs" / name).read_text())["dependencies"]
    return dict(re.fullmatch(r"(.+)==(.+)", pin).groups() for pin in parts[-1]["pip"])


def test_the_locks_differ_in_torch_alone():
    cpu, cuda = lock("cpu"), lock("cuda")
    assert cpu["torch"][0].split("+")[0] == cuda["torch"][0] and cpu["torch"][0].endswith("+cpu")
    only_cuda = set(cuda) - set(cpu)
    assert set(cpu) <= set(cuda) and {n for n in only_cuda if not n.startswith(("nvidia", "cuda"))} == {
        "triton"
    }
    assert {n: v for n, v in cpu.items() if n != "torch"} == {n: cuda[n] for n in cpu if n != "torch"}


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_all_but_the_cpu_build_of_torch_is_hashed(kind):
    assert {n for n, (_, hashes) in lock(kind).items() if not hashes} <= (
        {"torch"} if kind == "cpu" else set()
    )


def test_this_environment_is_the_lock():
    have = {name: version(name) for name in lock("cpu")}
    kind = "cpu" if have["torch"].endswith("+cpu") else "cuda"
    assert have == {name: pin for name, (pin, _) in lock(kind).items() if name in have}


def test_what_the_package_declares_is_locked():
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    declared = {normal(re.split(r"[<>=\[ ]", need)[0]) for need in project["dependencies"]}
    assert declared <= set(lock("cpu")) and declared <= set(lock("cuda"))


@pytest.mark.parametrize("name", ENVS)
def test_conda_pins_equal_the_lock(name):
    assert {n: v for n, v in pins(name).items()} == {n: lock("cuda")[normal(n)][0] for n in pins(name)}


def blocks():
    """(file, rule, text) of every rule in rules/; behind one made of another stands what it takes over."""
    for path in sorted((HERE / "rules").glob("*.smk")):
        texts = {}
        for block in re.split(r"^(?=rule |use rule )", path.read_text(), flags=re.M)[1:]:
            parent, name = re.match(r"(?:use rule (\w+) as |rule )(\w+)", block).groups()
            texts[name] = block + texts.get(parent, "")
            yield path.name, name, texts[name]


def rules():
    """(file, rule, env file, script) of every rule with a script."""
    for file, rule, block in blocks():
        env = re.search(r'conda:\s+"\.\./envs/([\w.-]+)"', block)
        script = re.search(r'script:\s+"\.\./workflow/scripts/([\w.-]+)"', block)
        if script:
            yield file, rule, env and env[1], script[1]


def test_every_rule_names_an_environment_that_exists():
    wrong = [(file, rule) for file, rule, env, _ in rules() if env not in ENVS]
    assert not wrong


def test_every_rule_states_its_environment_threads_and_gpu():
    for file, rule, block in blocks():
        for stated in (
            r"^    conda:\n",
            r"^    threads: \S",
            r"^    resources:\n        gpu=\S",
            r"^    script:\n",
        ):
            assert re.search(stated, block, re.M), f"{file}, rule {rule}: no {stated}"


def test_every_rule_is_planned_by_its_record():
    for file, rule, block in blocks():
        assert f'        plan=planned("{rule}"),\n' in block, f"{file}, rule {rule}: no plan among its inputs"


def test_what_is_hashed_beside_a_script_is_named_to_its_job():
    """A job hashes its code anew, so it must know of every file that the plan has hashed."""
    for file, rule, block in blocks():
        more = re.search(r'code\("[\w.]+", (.+)\),\n', block)
        named = (
            {f"[{more[1]}]", f"sources={more[1].removeprefix('*').removesuffix('(w)')},"}
            if more
            else {"sources="}
        )
        assert any(form in block for form in named) == bool(more), f"{file}, rule {rule}: sources"


def test_slurm_gives_every_rule_in_the_models_environment_a_measure_of_its_own():
    measures = yaml.safe_load((HERE / "profiles" / "slurm" / "config.yaml").read_text())["set-resources"]
    modelling = {rule for _, rule, env, _ in rules() if env == "model.yaml"}
    assert {"grpo", "drift", "loss_overlap", "substrate_rates", "self_taught_rounds"} <= modelling
    assert modelling <= set(measures) <= {rule for _, rule, _ in blocks()}


def test_every_environment_holds_what_its_rules_import():
    """Against the code: third-party imports behind each script, of the library modules too."""
    distributions = packages_distributions()
    for file, rule, env, script in rules():
        missing = {}
        for path in fingerprint.closure(HERE / "workflow" / "scripts" / script):
            if path.suffix != ".py":
                continue
            names = [name for name, _ in fingerprint._parse(path, fingerprint._version(path)).imports]
            for top in {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) - {""}:
                found = {normal(name) for name in distributions.get(top, [top])}
                if top not in ("projected_grpo", "snakemake") and not found & {normal(n) for n in pins(env)}:
                    missing[top] = path.name
        assert not missing, f"{file}, rule {rule}: envs/{env} lacks {missing}"
