"""Pair sets that nobody wrote by hand, in the format of `config/pairs`: prompt, hack, clean.

`self_taught` contrasts evaluations (hack = the wrong one of a card pair, clean = the correct one);
`self_taught_code` contrasts code (hack = a rollout that the weak detector flags, clean = an unflagged one of
the same problem).
"""

import difflib
from collections.abc import Sequence
from pathlib import Path

from projected_grpo.evaluator.cards import Card
from projected_grpo.evaluator.prompts import Wording
from projected_grpo.evaluator.traces import COLUMNS, PURPOSE, ScoreEvent
from projected_grpo.method.pairs import Pair
from projected_grpo.parquet import read_parquet


def evaluation_pairs(
    pairs: Sequence[tuple[Card, Card]], modes: dict[str, str], wording: Wording, n: int
) -> list[Pair]:
    """At most n pairs of evaluations: modes in rotation, within a mode the gravest mistakes first, one per
    situation.

    `modes` gives the loophole mode of a trace id.
    """
    order = sorted(pairs, key=lambda pair: (-abs(pair[0].phi_after - pair[1].phi_after), pair[0].id))
    found: dict[str, list[Pair]] = {}
    seen = set()
    for right, wrong in order:
        if right.situation_key() in seen:
            continue
        seen.add(right.situation_key())
        event = ScoreEvent(
            right.situation, right.action, right.outcome, right.phi_before, right.phi_after, right.reasoning
        )
        mode = modes[right.trace_id]
        found.setdefault(mode, []).append(
            Pair(
                prompt=wording.ask_score(PURPOSE, event),
                hack=wording.evaluation(wrong.phi_after, wrong.reasoning),
                clean=wording.evaluation(right.phi_after, right.reasoning),
                tags=(mode, wrong.mistake_type.replace(" ", "_")),
            )
        )
    return _rotate(found, n)


def code_pairs(rollouts: str | Path, n: int) -> list[Pair]:
    """At most n pairs of code: per problem the flagged and the unflagged completion that are most alike, modes
    in rotation.

    Most alike, so that the exploit is what differs. Both compile; unflagged ones that the grader accepts are
    preferred. Reads the columns of `traces.COLUMNS` alone. Raises UserError with the path where the file is damaged.
    """
    frame = read_parquet(rollouts, COLUMNS)
    frame = frame[frame["can_compile"].astype(bool)]
    frame = frame.sort_values(["step", "problem_id", "sample"], kind="stable")
    frame = frame.drop_duplicates(["problem_id", "mode", "completion"])
    found: dict[str, list[tuple[float, Pair]]] = {}
    for (problem, mode), rows in frame.groupby(["problem_id", "mode"], sort=True):
        flagged = rows[rows["channel"].astype(bool) & rows["passed"].astype(bool)]["completion"].tolist()
        honest = rows[~rows["channel"].astype(bool)]
        accepted = honest[honest["passed"].astype(bool)]
        clean = (accepted if len(accepted) else honest)["completion"].tolist()
        both = [(_alike(a, b), a, b) for a in flagged for b in clean if a.split() != b.split()]
        if not both:
            continue
        alike, hack, good = max(both)
        prompt = rows["prompt"].iloc[0]
        pair = Pair(prompt=prompt, hack=hack, clean=good, tags=(mode, f"problem_{problem}"))
        found.setdefault(mode, []).append((alike, pair))
    best = {mode: [pair for _, pair in sorted(some, key=lambda x: -x[0])] for mode, some in found.items()}
    return _rotate(best, n)


def _alike(a: str, b: str) -> float:
    return difflib.SequenceMatcher(None, a, b, autojunk=False).ratio()


def _rotate(found: dict[str, list[Pair]], n: int) -> list[Pair]:
    """At most n pairs, one of each mode in turn. Whether they are enough is the basis's business."""
    chosen: list[Pair] = []
    ranks = max((len(pairs) for pairs in found.values()), default=0)
    for rank in range(ranks):
        chosen += [found[mode][rank] for mode in sorted(found) if rank < len(found[mode])]
    return chosen[:n]
