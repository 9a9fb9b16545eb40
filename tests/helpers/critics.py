"""Made-up rounds and cards of the self-taught critic, and the page that shows them."""

from types import SimpleNamespace

import pandas as pd

from projected_grpo.pages.critic import page_of

CONTEXT = SimpleNamespace(
    name="self_taught", config=SimpleNamespace(trial=False, seeds=(41, 42), is_small=True)
)


def record_of_rounds(seed, rounds):
    """Return a `run.json`: each of `rounds` over what every round has."""
    empty = {"skipped": {}, "turned_away": {}, "unanswered": {"pool": {}}}
    usage = {"calls": 3, "tokens_in": 5, "tokens_out": 2, "cost": None}
    found = {"model": f"small-s{seed}", "seed": seed, "critic": "trained:m", "usage": usage}
    return found | {"rounds": [empty | done for done in rounds]}


def made_cards(**said):
    """Return a pair of promoted cards, right and wrong."""
    card = {"model": "m", "trace_id": "t", "event": 0, "status": "promoted", "mistake_type": "inflated score"}
    card |= {"reasoning": "so it is", "action": "code", "outcome": "accepted", **said}
    kinds = (("critic_calibration", 2.0), ("failure_pattern", 9.0))
    return pd.DataFrame([card | {"kind": kind, "id": kind, "phi_after": phi} for kind, phi in kinds])


def shown_page(records, runs, cards):
    """Return the critic's page."""
    return page_of(CONTEXT, records, runs, cards)
