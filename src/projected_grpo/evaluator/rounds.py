"""The iteration: each round makes card pairs from the traces on which the current critic errs most.

The critic's error is taken against the weak score here; the strict oracle enters only in `oracle`, which
reads what this module writes.
"""

import logging
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from projected_grpo.cells.self_taught import SelfTaught
from projected_grpo.evaluator.cards import CardPair
from projected_grpo.evaluator.critic import REFERENCE, Critic, Score, TrainedCritic, problems
from projected_grpo.evaluator.evaluator import SelfTaughtEvaluator
from projected_grpo.evaluator.gate import PROMOTED
from projected_grpo.evaluator.memory import Memory
from projected_grpo.evaluator.traces import PURPOSE, Trace, balanced_sample

log = logging.getLogger(__name__)
BEFORE, IN_CONTEXT, TRAINED = "before", "cards in context", "trained on cards"


@dataclass
class Outcome:
    """`evaluations`: one row per measured trace, round and condition; `rounds`: what each round did;
    `unanswered_before`: the measured traces without a usable answer before any round, by reason.
    """

    evaluations: list[dict] = field(default_factory=list)
    rounds: list[dict] = field(default_factory=list)
    unanswered_before: dict[str, int] = field(default_factory=dict)

    def record(self, traces: Sequence[Trace], number: int, condition: str, scores: Sequence[Score]) -> dict:
        """Keep the scores of the measured traces; returns how many have none, by reason."""
        for trace, (phi, problem) in zip(traces, scores, strict=True):
            row = {"trace_id": trace.id, "round": number, "condition": condition, "phi": phi}
            self.evaluations.append({**row, "weak_phi": trace.last.phi_after, "problem": problem})
        return dict(problems(scores))


def run_rounds(
    critic: Critic,
    memory: Memory,
    parts: Mapping[str, Sequence[Trace]],
    settings: SelfTaught,
    seed: int,
) -> Outcome:
    """Run all rounds: in each, the worst of a pool of traces are asked about, those without a usable answer last.

    `parts`: traces of problems apart, by name. "calibration" makes cards, "measured" shows the critic's error, on
    "demonstrations" the reference learns that says how hard a round's pairs are. A critic without weights of its
    own to train (a server) has its cards in the context alone, and no reference. After each round the memory holds
    what the critic took so far.
    """
    held = balanced_sample(parts["measured"], settings.measured, seed)
    trained = critic if isinstance(critic, TrainedCritic) else None
    if trained is not None:
        trained.learn_reference([trace.last for trace in parts["demonstrations"]], PURPOSE)
    outcome = Outcome()
    outcome.unanswered_before = outcome.record(held, 0, BEFORE, critic.evaluate(held))
    pairs: list[CardPair] = []
    left = [trace for trace in parts["calibration"] if abs(trace.last.delta) >= settings.min_delta]
    # Steps that moved nothing make no cards: what the critic is not reminded of, it forgets.
    unmoved = [trace for trace in parts["calibration"] if abs(trace.last.delta) < settings.min_delta]
    kept = [trace.last for trace in balanced_sample(unmoved, settings.per_round, seed)]
    for number in range(1, settings.rounds + 1):
        memory.note_usage(vars(critic.backend.usage))
        pool = balanced_sample(left, settings.pool, seed + number)
        said = critic.latest(pool, pairs)
        errors = _errors(pool, said)
        order = _worst_in_turn(errors, [trace.last.kind for trace in pool])[: settings.per_round]
        worst = [pool[i] for i in order]
        used = {trace.id for trace in worst}
        left = [trace for trace in left if trace.id not in used]
        evaluator = SelfTaughtEvaluator(
            critic.backend,
            memory,
            min_delta=settings.min_delta,
            wording=critic.wording,
            temperature=settings.temperature,
            seed=seed + number,
            attempts=settings.attempts,
            round=number,
        )
        evaluator.generate(worst)
        made = [pair for pair in memory.pairs() if pair[0].trace_id in used]
        pairs += made
        done: dict[str, Any] = {
            "round": number,
            "asked": len(worst),
            "pairs": len(made),
            "pool_error": _mean(errors),
            "asked_error": _mean([errors[i] for i in order]),
            "skipped": dict(_skipped(memory, worst) + evaluator.failed),
            "turned_away": dict(_turned_away(memory, used)),
            "unanswered": {"pool": dict(problems(said))},
        }
        if trained is not None:
            hardness = _errors(pool, trained.scores_of(REFERENCE, pool))
            hard = {trace.id: error for trace, error in zip(pool, hardness, strict=True)}
            done |= {
                "pool_hardness": _mean(list(hard.values())),
                "hardness": _mean([hard[right.trace_id] for right, _ in made]),
            }
        outcome.rounds.append(done)
        log.info("round %d: %s", number, done)
        if settings.cards_in_context or trained is None:
            scores = critic.evaluate(held, pairs)
            done["unanswered"][IN_CONTEXT] = outcome.record(held, number, IN_CONTEXT, scores)
        if trained is not None and pairs:
            trained.calibrate([right.scored() for right, _ in pairs] + kept, PURPOSE, number)
            done["unanswered"][TRAINED] = outcome.record(held, number, TRAINED, trained.latest(held))
    return outcome


def _errors(traces: Sequence[Trace], scores: Sequence[Score]) -> list[float | None]:
    """Distances to the weak score; None for an unusable answer, which shows no misjudgement."""
    return [
        None if score.phi is None else abs(score.phi - trace.last.phi_after)
        for trace, score in zip(traces, scores, strict=True)
    ]


def _worst_in_turn(errors: Sequence[float | None], kinds: Sequence[Hashable]) -> list[int]:
    """Positions by falling error, one of each kind in turn; those without an error at the end.

    By error alone a round's lessons would all have one correct score, and teach to give that to everything.
    """
    rank: dict[int, tuple[bool, int]] = {}
    seen: Counter[Hashable] = Counter()
    for i in sorted(range(len(errors)), key=lambda i: -(errors[i] or 0.0)):
        rank[i] = (errors[i] is None, seen[kinds[i]])
        seen[kinds[i]] += 1
    return sorted(rank, key=lambda i: rank[i])


def _mean(errors: Sequence[float | None]) -> float | None:
    """Over the answered traces; None without any."""
    known = [error for error in errors if error is not None]
    return sum(known) / len(known) if known else None


def _skipped(memory: Memory, traces: Sequence[Trace]) -> Counter[str]:
    """Unusable answers about these traces by reason, in this process or before it was interrupted."""
    sources = [f"{trace.id}#{i}" for trace in traces for i in range(len(trace.events))]
    return Counter(memory.skips[source] for source in sources if source in memory.skips)


def _turned_away(memory: Memory, trace_ids: set[str]) -> Counter[str]:
    """Cards of these traces that the gate did not promote, by its reason."""
    return Counter(
        decision.label
        for id, decision in memory.decisions.items()
        if decision.status != PROMOTED and memory.cards[id].trace_id in trace_ids
    )
