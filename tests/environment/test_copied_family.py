"""A problem family is a folder: a copy under another name works, with numbers and link of its own."""

import shutil
import subprocess
import sys
from pathlib import Path

import projected_grpo

SCRIPT = """
import yaml
from projected_grpo.cells.config import Config
from projected_grpo.schema_errors import Misfit, validate
from projected_grpo.environment import families
from projected_grpo.environment.diagonal import matrix

assert families.names() == ["oneliners", "others"]
plain = yaml.safe_load(open("config/config.yaml"))
small = plain["small"] | {"family": "others", "mixture": {"easy": 0.25}}
small |= {"link": {"topic": "city", "rho": 1.0}}
config = Config.model_validate(plain | {"small": small})
own = families.load("others")
assert type(config.small.mixture) is own.Mixture and type(config.small.link) is own.Link
assert Config.model_validate(config.plain()) == config
assert config.small.corpus("leak")[0].leak["sentinel"] == 0.08
assert type(config.small.corpus("city1")[1]) is own.Link
assert len(list(own.base_examples(1, 5, config.small.mixture, config.small.link))) == 5
assert matrix("others", names=4)[0]["sentinel"]["sentinel"][0] == 2
for key, value in {"family": "nobody", "mixture": {"hard_share": 0.5}}.items():
    try:
        validate(Config, plain | {"small": small | {key: value}})
    except Misfit as error:
        print(error)
"""


def test_a_copied_folder_is_a_family(tmp_path):
    src = tmp_path / "projected_grpo"
    shutil.copytree(Path(projected_grpo.__file__).parent, src, ignore=shutil.ignore_patterns("__pycache__"))
    folder = src / "environment/families"
    shutil.copytree(folder / "oneliners", folder / "others")
    for file in (folder / "others").glob("*.py"):
        file.write_text(file.read_text().replace("hard_share", "easy"))
    root = Path(projected_grpo.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=root,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    family, key = done.stdout.splitlines()
    assert family == "small.family: 'nobody', allowed: oneliners, others"
    assert key.startswith("small.mixture.hard_share: unknown key; allowed: easy, honours")
