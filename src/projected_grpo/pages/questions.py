"""The questions of a config, expanded to their cells."""

from projected_grpo.cells.cell import Question, load_questions
from projected_grpo.cells.config import Config
from projected_grpo.strict_yaml import read_yaml


def read_questions(config: Config) -> dict[str, Question]:
    """Read the questions that a config names. Raises UserError where the file is missing or a row is unknown."""
    return load_questions(read_yaml(config.questions), config)


def read_question(name: str, config: Config) -> Question:
    """Read one question by name."""
    return read_questions(config)[name]
