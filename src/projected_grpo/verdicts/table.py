"""A question's page: its runs, and what other stages measured of them, as one frame; the rest is a template."""

import pandas as pd

from projected_grpo.measures import numbers
from projected_grpo.measures.beside import Beside
from projected_grpo.measures.runs import load_runs
from projected_grpo.pages import question
from projected_grpo.pages.context import Context
from projected_grpo.pages.page import Page
from projected_grpo.records import commit


def frame_of(context: Context) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the numbers of a question's finished runs, and why each of the others is left out."""
    runs, why = load_runs(context.results, context.question.cells)
    frames = [
        numbers.of_runs(runs.values()),
        numbers.of_bases(context.results, [context.question]),
        Beside(context.question, context.config).numbers(),
    ]
    return pd.concat([frame for frame in frames if len(frame)] or frames[:1], ignore_index=True), why


def make(context: Context) -> Page:
    """Return the page of a question."""
    frame, why = frame_of(context)
    made = question.estimated(context.question, frame, context.config, why)
    return question.page(made, context.config, question.provenance(frame, made.own, commit() or "no commit"))
