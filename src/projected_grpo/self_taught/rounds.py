"""The iteration: each round makes card pairs from the traces on which the current critic errs most.

The critic's error is taken against the weak score here; the strict oracle enters only in `measure`, which
reads what this module writes.
"""

import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass

from projected_grpo.self_taught.cards import Card
from projected_grpo.self_taught.critic import Critic, TrainedCritic
from projected_grpo.self_taught.evaluator import SelfTaughtEvaluator
from projected_grpo.self_taught.memory import Memory
from projected_grpo.self_taught.traces import MAX_PHI, PURPOSE, Trace

log = logging.getLogger(__name__)
BEFORE, IN_CONTEXT, TRAINED = "before", "cards in context", "trained on cards"


@dataclass(frozen=True)
class Plan:
    """`pool` traces are looked at in each round, the `per_round` worst of them are asked about; `measured`
    traces of other problems show the critic's error.
    """

    rounds: int
    pool: int
    per_round: int
    measured: int
    min_delta: float
    temperature: float  # at which wrong evaluations are sampled


@dataclass
class Outcome:
    """`evaluations`: one row per measured trace, round and condition; `rounds`: what each round did."""

    evaluations: list[dict]
    rounds: list[dict]


def run_rounds(
    critic: Critic,
    memory: Memory,
    calibration: Sequence[Trace],
    measured: Sequence[Trace],
    plan: Plan,
    seed: int,
) -> Outcome:
    """Run all rounds. A critic without weights of its own to train (a server) has its cards in the context
    alone.
    """
    trainable = isinstance(critic, TrainedCritic)

    def latest(traces: Sequence[Trace]) -> list[float | None]:
        return critic.evaluate_calibrated(traces) if trainable else critic.evaluate(traces, pairs)

    held = _sample(measured, plan.measured, seed)
    outcome = Outcome([], [])
    _record(outcome, held, 0, BEFORE, critic.evaluate(held))
    pairs: list[tuple[Card, Card]] = []
    left = [trace for trace in calibration if abs(trace.scores()[-1][1].delta) >= plan.min_delta]
    for number in range(1, plan.rounds + 1):
        pool = _sample(left, plan.pool, seed + number)
        errors = [_error(trace, phi) for trace, phi in zip(pool, latest(pool), strict=True)]
        order = sorted(range(len(pool)), key=lambda i: -errors[i])[: plan.per_round]
        worst = [pool[i] for i in order]
        evaluator = SelfTaughtEvaluator(
            critic.backend,
            memory,
            min_delta=plan.min_delta,
            wording=critic.wording,
            temperature=plan.temperature,
            seed=seed + number,
            round=number,
        )
        evaluator.generate_from_traces(worst)
        used = {trace.id for trace in worst}
        left = [trace for trace in left if trace.id not in used]
        pairs += [pair for pair in memory.pairs() if pair[0].trace_id in used]
        outcome.rounds.append(
            {
                "round": number,
                "asked": len(worst),
                "pairs": evaluator.pairs_generated,
                "pool_error": sum(errors) / max(1, len(errors)),
                "asked_error": sum(errors[i] for i in order) / max(1, len(order)),
                "skipped": dict(evaluator.skipped),
                "turned_away": dict(evaluator.turned_away),
            }
        )
        log.info("round %d: %s", number, outcome.rounds[-1])
        _record(outcome, held, number, IN_CONTEXT, critic.evaluate(held, pairs))
        if trainable and pairs:
            critic.calibrate(pairs, PURPOSE, number)
            _record(outcome, held, number, TRAINED, critic.evaluate_calibrated(held))
    return outcome


def _sample(traces: Sequence[Trace], n: int, seed: int) -> list[Trace]:
    """At most n traces, drawn without replacement."""
    return random.Random(seed).sample(list(traces), min(n, len(traces)))


def _error(trace: Trace, phi: float | None) -> float:
    """Distance to the weak score; an unusable answer counts as the largest error."""
    return MAX_PHI if phi is None else abs(phi - trace.scores()[-1][1].phi_after)


def _record(outcome: Outcome, traces: Sequence[Trace], number: int, condition: str, scores: list) -> None:
    for trace, phi in zip(traces, scores, strict=True):
        weak = trace.scores()[-1][1].phi_after
        row = {"trace_id": trace.id, "round": number, "condition": condition, "phi": phi, "weak_phi": weak}
        outcome.evaluations.append(row)
