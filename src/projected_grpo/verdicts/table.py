"""A question's page: its runs, and what other stages measured of them, as one frame; the rest is a template."""

from projected_grpo.measures import numbers
from projected_grpo.pages import question
from projected_grpo.pages.context import Context
from projected_grpo.pages.page import Page
from projected_grpo.records import commit


def make(context: Context) -> Page:
    """Return the page of a question; runs that do not count are left out and named."""
    frame, (_, why) = numbers.of_tree(context.config, [context.question])
    made = question.estimated(context.question, frame, context.config, why)
    return question.page(made, context.config, question.provenance(frame, made.own, commit() or "no commit"))
