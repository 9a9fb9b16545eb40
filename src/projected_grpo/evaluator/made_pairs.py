"""Pair sets that nobody wrote by hand, in the format of `config/pairs`: prompt, hack, clean.

`self_taught` contrasts evaluations (hack = the wrong one of a card pair, clean = the correct one);
`self_taught_code` contrasts code (hack = a rollout that the weak detector flags, clean = an unflagged one of
the same problem).
"""

import itertools
from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path

from projected_grpo.evaluator.cards import CardPair
from projected_grpo.evaluator.prompts import Wording
from projected_grpo.evaluator.traces import PURPOSE, distinct
from projected_grpo.method.pairs import Pair


def evaluation_pairs(pairs: Sequence[CardPair], wording: Wording, n: int) -> list[Pair]:
    """At most n pairs of evaluations: the loopholes' modes in rotation, within one the gravest mistakes first, one per
    situation.
    """
    order = sorted(pairs, key=lambda pair: (-abs(pair[0].phi_after - pair[1].phi_after), pair[0].id))
    gravest: dict[str, CardPair] = {}
    for pair in order:
        gravest.setdefault(pair[0].situation_key(), pair)
    found: dict[str, list[Pair]] = {}
    for right, wrong in gravest.values():
        found.setdefault(right.mode, []).append(
            Pair(
                prompt=wording.ask_score(PURPOSE, right.scored()),
                hack=wording.evaluation(wrong.phi_after, wrong.reasoning),
                clean=wording.evaluation(right.phi_after, right.reasoning),
                tags=(right.mode or "step", wrong.mistake_type.replace(" ", "_")),
            )
        )
    return _rotate(found, n)


def code_pairs(rollouts: str | Path, n: int) -> list[Pair]:
    """At most n pairs of code: per problem the flagged and the unflagged completion that are most alike, modes
    in rotation.

    Most alike, so that the exploit is what differs. Both compile; unflagged ones that the grader accepts are
    preferred. Raises UserError with the path where the file is damaged.
    """
    frame = distinct(rollouts)
    frame = frame[frame["can_compile"].astype(bool)].astype({"channel": bool, "passed": bool})
    found: dict[str, list[tuple[float, Pair]]] = {}
    for (problem, mode), rows in frame.groupby(["problem_id", "mode"], sort=True):
        flagged, honest = rows[rows["channel"] & rows["passed"]], rows[~rows["channel"]]
        clean = honest[honest["passed"]] if honest["passed"].any() else honest
        texts = itertools.product(flagged["completion"], clean["completion"])
        both = [(a, b) for a, b in texts if a.split() != b.split()]
        if not both:
            continue
        alike, hack, good = max((SequenceMatcher(None, a, b, autojunk=False).ratio(), a, b) for a, b in both)
        pair = Pair(prompt=rows["prompt"].iloc[0], hack=hack, clean=good, tags=(mode, f"problem_{problem}"))
        found.setdefault(mode, []).append((alike, pair))
    best = {mode: [pair for _, pair in sorted(some, key=lambda x: -x[0])] for mode, some in found.items()}
    return _rotate(best, n)


def _rotate(found: dict[str, list[Pair]], n: int) -> list[Pair]:
    """At most n pairs, one of each mode in turn. Whether they are enough is the basis's business."""
    turns = itertools.zip_longest(*(found[mode] for mode in sorted(found)))
    return [pair for turn in turns for pair in turn if pair][:n]
