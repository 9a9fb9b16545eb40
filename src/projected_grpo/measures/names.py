"""The measures that questions and primary outcomes name, checked before any job, and the contrasts of every table.

No statistics here. Which contrasts a row can have is checked where its question is read.
"""

from collections.abc import Collection, Iterator, Mapping

from projected_grpo.cells.cell import Question
from projected_grpo.cells.config import Config
from projected_grpo.environment.levers import LOOPHOLES
from projected_grpo.errors import UserError, nearest
from projected_grpo.measures.measure import MEASURES
from projected_grpo.schema_errors import Keys, key_path
from projected_grpo.yaml_layers import QuestionFiles

RATE, BASELINE, AGAINST, RANDOM, PLACE, ITSELF = "rate", "baseline", "against", "random", "place", "itself"
POOLED, POOLED_RANDOM = "pooled", "pooled, random"  # baseline and random of a row that stands for several
FRONTIER = "frontier"  # known honest less what training less has at the same known hack
SLOPE = "slope"
CONTRASTS = (BASELINE, AGAINST, RANDOM, PLACE, ITSELF, POOLED, POOLED_RANDOM, FRONTIER, SLOPE)


def check_names(config: Config, questions: Mapping[str, Question]) -> None:
    """Raise UserError, one line with the key, on a measure that no table has, or a contrast that renames one of all."""
    for name, question in questions.items():
        for keys, word, known in _of_question(question):
            if word not in known:
                QuestionFiles(config.questions).fail([name, *keys], f"{word!r}; {nearest(word, known)}")
        for contrast in {RATE, *CONTRASTS}.intersection(question.contrasts):
            problem = f"{contrast!r} is a contrast of every table, allowed: another name"
            QuestionFiles(config.questions).fail([name, "contrasts", contrast], problem)
    for keys, word, known in _of_config(config, questions):
        if word not in known:
            raise UserError(f"config: {key_path(keys)}: {word!r}; {nearest(word, known)}")


def _of_config(
    config: Config, questions: Mapping[str, Question]
) -> Iterator[tuple[Keys, str, Collection[str]]]:
    """Yield (keys, name, what is allowed) of each measure and loophole that a config names."""
    for number, one in enumerate(config.primary.outcomes):
        yield ["primary", "outcomes", number, "measure"], one.measure, MEASURES
    for model, floors in config.floors.items():
        for measure, rates in floors.items():
            yield ["floors", model, measure], measure, MEASURES
            for mode in rates:
                yield ["floors", model, measure, mode], mode, ["all", *LOOPHOLES]
    for model, by_mix in config.pilot.items():
        for mix, spreads in by_mix.items():
            for measure in spreads:
                yield ["pilot", model, mix, measure], measure, MEASURES


def _of_question(question: Question) -> Iterator[tuple[Keys, str, Collection[str]]]:
    """Yield the same of each measure that a question names."""
    for number, measure in enumerate(question.measures):
        yield ["measures", number], measure, MEASURES
    if question.figure.measure is not None:
        yield ["figure", "measure"], question.figure.measure, MEASURES
    for keys, _, _, named in question.lines():
        if named is not None:
            is_own = len(keys) == 2  # of a sentence itself: it quotes rates of others
            yield [*keys, "measure"] if is_own else keys, named, MEASURES
