"""What is published of a config: its questions for the seeds that `docs/results/runs.csv` has, and their estimates.

Seeds of tuning and of confirmation stand aside, and a question has the seeds of what it compares.
"""

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pandas as pd
from snakemake.utils import update_config

from projected_grpo.cells.cell import Question, Row, load_questions
from projected_grpo.cells.check import load
from projected_grpo.cells.config import Config
from projected_grpo.measures import estimates, numbers
from projected_grpo.measures.names import check_names
from projected_grpo.pages import question as pages
from projected_grpo.pages.answer import Estimated
from projected_grpo.strict_yaml import read_mapping
from projected_grpo.yaml_layers import QuestionFiles

DEFAULT = Path("config/config.yaml")


@dataclass(frozen=True)
class Place:
    """Where the pages of one config are published: the default's in `docs/results`, others' in a folder below it."""

    docs: Path
    name: str = ""

    @property
    def folder(self) -> Path:
        return self.docs / "results" / self.name


def layered(*overlays: Path, **said: object) -> Config:
    """Return configs laid over the default one, in turn; said: keys over all. UserError as at a start."""
    files = list(dict.fromkeys([DEFAULT, *overlays]))
    merged: dict = {}
    for layer in (*map(read_mapping, files), said):
        update_config(merged, layer)
    return load(files, merged)[0]


def questions_of(config: Config) -> dict[str, Question]:
    """Return a config's questions. UserError as at a start."""
    questions = load_questions(QuestionFiles(config.questions).parsed, config)
    check_names(config, questions)
    return questions


def for_seeds(config: Config, there: Iterable[int]) -> tuple[Config, dict[str, Question]]:
    """Return config and questions for those of some seeds that are published: tuning and confirmation stand aside.

    Where the config's own seeds are to confirm, the others of these are no longer aside.
    """
    own, fresh = set(config.seeds), set(config.primary.seeds)
    aside = {*config.tuning, *(() if own & fresh else fresh)} - own
    seeds = sorted({int(seed) for seed in there} - aside) or config.seeds
    every = config.model_copy(update={"seeds": type(config.seeds)(seeds)})
    return every, questions_of(every)


def read_tree(*overlays: Path, **said: object) -> tuple[Config, dict[str, Question]]:
    """Return a config and its questions for its own seeds and all others that its results tree has runs of."""
    config = layered(*overlays, **said)
    ends = (folder.name.rpartition("-s")[2] for folder in Path(config.results, "grpo").glob("*-s*"))
    return for_seeds(config, [*config.seeds, *(int(end) for end in ends if end.isdecimal())])


def with_seeds(config: Config, frame: pd.DataFrame) -> tuple[Config, dict[str, Question]]:
    """Return config and questions for all seeds of the frame's runs that are published, each question for its own."""
    is_base = frame["cell"].str.startswith(numbers.BASE.format(""))
    every, questions = for_seeds(config, frame.loc[~is_base, "seed"])
    return every, {name: of_own_seeds(one, frame) for name, one in questions.items()}


def of_own_seeds(question: Question, frame: pd.DataFrame) -> Question:
    """Return a question for the seeds of what it compares, so that its page names no other question's as missing.

    Rows of one baseline have the seeds of their group, as have groups with rows that are compared with each other. A
    group without any has those of the question.
    """
    there = set(frame["cell"].unique())
    own = {row.name: {cell.seed for cell in row.cells if cell.id in there} for row in question.rows}
    group = {row.name: row.baseline or row.name for row in question.rows}
    found: dict[str, set[int]] = {name: set() for name in group.values()}
    for row in (row for row in question.rows if row.baseline):
        found[group[row.name]] |= own[row.name] & own[str(row.baseline)]
    every = set[int]().union(*found.values()) or set[int]().union(*own.values())
    if not every:
        return question
    joined = {name: {name} for name in found}
    for names in _compared(question):
        whole = set[str]().union(*(joined[group[name]] for name in names))
        joined |= dict.fromkeys(whole, whole)
    seeds = {name: set[int]().union(*map(found.__getitem__, joined[name])) or every for name in found}

    def kept(row: Row) -> Row:
        cells = tuple(cell for cell in row.cells if cell.seed in seeds[group[row.name]])
        return row.model_copy(update={"cells": cells})

    return question.model_copy(update={"rows": tuple(map(kept, question.rows))})


def _compared(question: Question) -> Iterator[list[str]]:
    """Yield the names of rows that one number is of, beside a row and its baseline."""
    rows = {row.name: row for row in question.rows}
    yield from ([row.name, row.against] for row in question.rows if row.against)
    yield from map(question.parts_of, {row.pooled for row in question.rows})
    for weights in chain.from_iterable(kind.values() for kind in question.contrasts.values()):
        yield [name for name in weights if name in rows]


def estimated(
    config: Config, frame: pd.DataFrame, some: Container[str] | None = None
) -> tuple[Config, dict[str, Estimated]]:
    """Return the config for the frame's seeds, and its questions but A/A with their estimates; some: those alone."""
    own, questions = with_seeds(config, frame)
    asked = {n: one for n, one in questions.items() if one.kind != "aa" and (some is None or n in some)}
    return own, {name: pages.estimated(one, frame, own) for name, one in asked.items()}


def outcomes_of(made: Iterable[Estimated], config: Config) -> pd.DataFrame:
    """Return the primary outcomes of a config, corrected together."""
    return estimates.primary_outcomes([each.frame for each in made], len(config.primary.outcomes))
