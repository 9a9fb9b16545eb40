"""What single questions ask besides, a file each: blocks of the answer, and `said`, the sentence that comes first."""

from projected_grpo.measures.table import Table
from projected_grpo.pages import places
from projected_grpo.pages.findings import controls, density, pooled, ratchet, routing

SPECIAL = (pooled.said, places.content, ratchet.said, density.said, controls.said, routing.said)


def headline(table: Table) -> str:
    """Return in a sentence what one of these special tests found; empty where a question has none of them."""
    return next(filter(None, (said(table) for said in SPECIAL)), "")
