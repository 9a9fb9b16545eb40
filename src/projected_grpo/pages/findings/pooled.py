"""All folds of a question as one (Q14)."""

from projected_grpo.measures.table import Table
from projected_grpo.pages.blocks import Listing, Paragraph
from projected_grpo.pages.contrasts import is_shown, with_bound, with_n, with_p
from projected_grpo.pages.text import p_is


def pooled(table: Table) -> list:
    """Return what rows show as one, such as all folds of Q14: the per-seed mean against that of their baselines."""
    lines = [line for line in table.pooled if table.primary in line.to_baseline]
    if not lines:
        return []
    parts = len([row for row in table.question.rows if row.pooled == lines[0].name])
    ns = with_n(line.to_baseline[table.primary] for line in lines)
    lead = f"All {parts} folds as one: the mean by seed of {table.about.words}, informative or not ({ns})."
    found = [
        Paragraph(
            "This test was chosen before the runs of this table, after folds of an earlier small model had suggested "
            "it. The folds stand beside it; Holm's p is over all rows that stand for folds, random axes among them.",
            lead,
        )
    ]
    items = []
    for line in lines:
        own = line.to_baseline[table.primary]
        said = f"`{line.name}` {with_p(own)}" + (f" (raw p {p_is(own.p)})" if own.p is not None else "")
        if (beyond := line.to_random.get(table.primary)) is not None:
            said += f"; against `{line.random}` {with_p(beyond)}"
        if not is_shown(line.to_baseline[table.primary]):
            said += f"; {with_bound(line.to_baseline[table.primary])}"
        items.append(said)
    return [*found, Listing(tuple(items))]


def said(table: Table) -> str:
    """Say what all folds as one show, beside random axes."""
    lines = [line for line in table.pooled if line.row.claims and table.primary in line.to_baseline]
    if not lines:
        return ""
    line = lines[0]
    own, beyond = line.to_baseline[table.primary], line.to_random.get(table.primary)
    words = table.about.words
    said = (
        f"changes {words} by {with_p(own)}"
        if is_shown(own)
        else f"is not shown to change {words} ({with_p(own)})"
    )
    if beyond is not None:
        apart = "differs" if is_shown(beyond) else "is not shown to differ"
        said += f"; from `{line.random}` it {apart}, by {with_p(beyond)}"
    return f"All folds as one, `{line.name}` {said} ({with_n([own])})."
