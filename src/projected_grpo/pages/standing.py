"""What a table's seeds let it say: a choice, a look, or a claim."""

from collections.abc import Collection, Iterable

from projected_grpo.pages.text import seed_list

TUNING = range(31, 36)  # replications that settings were chosen on
# Replications that were looked at before the recipe was fixed (docs/substrate.md): its corpus was first tried on one,
# the first edition, its learning rate and the critic's sampling on the others.
TRIED = (range(41, 42), range(41, 46))
CLAIM = 10  # seeds that a claim is made at


def _tuned(seeds: Iterable[int]) -> tuple[int, ...]:
    return tuple(seed for seed in seeds if seed in TUNING)


def of_seeds(seeds: Collection[int]) -> list[str]:
    """Return that sentence for these replications; nothing where they let a page make a claim."""
    if found := _tuned(seeds):
        return [f"Tuning seeds ({seed_list(found)}): a choice, no claim."]
    if 0 < len(seeds) < CLAIM:
        return [f"A look, with n = {len(seeds)}: claims are made at {CLAIM} seeds."]
    return []


def without_tried(seeds: Collection[int]) -> list[tuple[str, list[int]]]:
    """Return (what is said above, the seeds that are left) for each set of early trials that some of these were in."""
    found = []
    for tried in TRIED:
        others = [seed for seed in seeds if seed not in tried]
        if others and len(others) < len(seeds):
            lead = f"Without the seeds of early trials, {seed_list(tuple(tried))} (n = {len(others)})."
            found.append((lead, others))
    return found
