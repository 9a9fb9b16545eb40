"""What a table's seeds let it say: a choice, a look, or a claim."""

from projected_grpo.measures.table import Table
from projected_grpo.pages.text import seed_list

TUNING = range(31, 36)  # replications that settings were chosen on
# Replications that were looked at before the recipe was fixed (docs/substrate.md): its corpus was first tried on one,
# the first edition, its learning rate and the critic's sampling on the others.
TRIED = (range(41, 42), range(41, 46))
CLAIM = 10  # seeds that a claim is made at


def tuned(table: Table) -> tuple[int, ...]:
    """Return the seeds of a table that settings were chosen on."""
    return tuple(seed for seed in table.seeds if seed in TUNING)


def stands(table: Table, *said: str) -> str:
    """Return sentences behind the one that says what their seeds let them say; nothing where there are none."""
    return " ".join((*standing(table), *said)) if any(said) else ""


def standing(table: Table) -> list[str]:
    """Return the sentence that a table with tuning seeds, or with fewer than ten, begins with."""
    if seeds := tuned(table):
        return [f"Tuning seeds ({seed_list(seeds)}): a choice, no claim."]
    if table.seeds and len(table.seeds) < CLAIM:
        return [f"A look, with n = {len(table.seeds)}: claims are made at {CLAIM} seeds."]
    return []
