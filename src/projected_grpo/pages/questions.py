"""The questions of a config, expanded to their cells."""

from projected_grpo.cells.cell import Question, load_questions
from projected_grpo.cells.config import Config
from projected_grpo.digests import check_planned, of_value
from projected_grpo.strict_yaml import read_yaml


def read_questions(config: Config) -> dict[str, Question]:
    """Read the questions that a config names.

    Raises UserError where the file is missing, a row is unknown, or the file is not what the plan has read.
    """
    rows = read_yaml(config.questions)
    check_planned(config.questions, of_value(rows))
    return load_questions(rows, config)


def read_question(name: str, config: Config) -> Question:
    """Read one question by name."""
    return read_questions(config)[name]
