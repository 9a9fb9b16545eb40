"""A copy of the default config in which single keys are broken, and the one line that this must give."""

import copy
import re
import shutil
from pathlib import Path

import pytest
import shipped
import yaml

from projected_grpo.cells.check import load
from projected_grpo.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
DROP = object()


def read(path):
    return yaml.load(path.read_text(), Loader=yaml.CSafeLoader)


CONFIG_YAML, QUESTIONS_YAML = read(ROOT / "config" / "config.yaml"), shipped.questions()


def put(target, path, value):
    """Change what stands at a path such as `Q10.rows[1].basis`; DROP takes it out."""
    *parents, last = (int(key) if key.isdecimal() else key for key in re.findall(r"[^.\[\]]+", path))
    for part in parents:
        target = target[part]
    if value is DROP:
        del target[last]
    else:
        target[last] = value


class Folder:
    """A copy of the default config in which single keys can be changed."""

    def __init__(self, path):
        self.path = path
        self.config, self.questions = copy.deepcopy(CONFIG_YAML), copy.deepcopy(QUESTIONS_YAML)
        self.config |= {
            "questions": str(path / "questions.yaml"),
            "pairs": str(ROOT / "config" / "pairs"),
            "seeds": 5,
        }

    def copy_pairs(self):
        self.config["pairs"] = str(self.path / "pairs")
        shutil.copytree(ROOT / "config" / "pairs", self.path / "pairs")

    def check(self):
        for name in ("config", "questions"):
            text = yaml.dump(getattr(self, name), Dumper=yaml.CSafeDumper, sort_keys=False)
            (self.path / f"{name}.yaml").write_text(text)
        load([self.path / "config.yaml"], self.config)

    def error(self):
        with pytest.raises(UserError) as caught:
            self.check()
        message = str(caught.value)
        assert "\n" not in message
        return message

    def check_line(self, file, path, value, expected):
        """Set a key and assert the one line that this gives: `expected` goes on from its path, or from the file."""
        if (asked := path.partition(".")[0]) in self.questions:  # read first, it is refused at once
            self.questions = {asked: self.questions.pop(asked), **self.questions}
        put(getattr(self, file), path, value)
        name, message = f"{self.path / file}.yaml: ", self.error()
        assert message.startswith(name)
        wanted = f"{path}{expected}" if expected[0] in ":.[" else expected
        assert matches(message.removeprefix(name), wanted), message


def merge(base, over):
    merged = copy.deepcopy(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = merge(merged[key], value) if both else value
    return merged


def matches(message, expected):
    """Whether the parts of `expected` (separated by `.*`) stand in `message` in this order."""
    place = 0
    for part in expected.split(".*"):
        found = message.find(part, place)
        if found < 0:
            return False
        place = found + len(part)
    return True
