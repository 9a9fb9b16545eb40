"""The questions of a config, expanded to their cells."""

from pathlib import Path

import yaml

from projected_grpo.errors import UserError
from projected_grpo.experiment.cell import Question, load_questions


def read_questions(config: dict) -> dict[str, Question]:
    """Read `config["questions"]`. Raises UserError where the file is missing or a row is unknown."""
    path = Path(config["questions"])
    if not path.exists():
        raise UserError(f"{path}: no such file (config key `questions`)")
    return load_questions(yaml.safe_load(path.read_text(encoding="utf-8")), config)


def read_question(name: str, config: dict) -> Question:
    """Read one question by name."""
    return read_questions(config)[name]
