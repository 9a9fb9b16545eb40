"""The self-taught evaluator: contrast pairs for a critic out of the agent's own traces, stored as memory
cards.

For each score event that moved the score, a backend writes a plausible but wrong evaluation; the correct one
is the event's own. No human label enters, and nothing is invented: an unusable answer is skipped, counted and
logged.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from projected_grpo.evaluator import answers
from projected_grpo.evaluator.backends import Backend, Reply, ask
from projected_grpo.evaluator.cards import CALIBRATION, FAILURE, TRUST, Card
from projected_grpo.evaluator.gate import PROMOTED
from projected_grpo.evaluator.memory import Memory
from projected_grpo.evaluator.prompts import FULL, Wording
from projected_grpo.evaluator.traces import ScoreEvent, Trace

log = logging.getLogger(__name__)
BATCH = 1024  # events asked about before the next traces are read
SEEDS = 1_000_003  # between the seeds of two attempts, apart from those of rounds and replications

Step = tuple[Trace, int, ScoreEvent]


class SelfTaughtEvaluator:
    """Asks `backend` for wrong evaluations and proposes both halves of each pair to `memory`.

    `min_delta`: score events that changed phi by less are left out. `pairs_generated` counts the pairs whose
    two cards were promoted, `skipped` the unusable answers by reason (`failed`: those of them that asking
    later may help), `turned_away` the cards that the gate did not promote. `attempts`: how often a step is
    asked about, with another seed, while its answer is unusable.
    """

    def __init__(
        self,
        backend: Backend,
        memory: Memory,
        *,
        min_delta: float = 0.5,
        wording: Wording = FULL,
        temperature: float = 1.0,
        seed: int = 0,
        attempts: int = 1,
        round: int = 0,
    ):
        self.backend, self.memory = backend, memory
        self.min_delta, self.wording = min_delta, wording
        self.temperature, self.seed, self.attempts, self.round = temperature, seed, attempts, round
        self.pairs_generated = 0
        self.skipped: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.turned_away: Counter[str] = Counter()

    def generate_from_trace(self, trace: Trace) -> int:
        """Make the pairs of one trace; returns how many. A trace without score events gives 0 and says so."""
        return self.generate_from_traces([trace])

    def generate_from_traces(self, traces: Iterable[Trace]) -> int:
        """Make the pairs of many traces; returns how many.

        Each pair is stored as soon as its answer is there, and steps that the memory has settled before are
        not asked about again: an interrupted batch goes on where it stopped. Raises UserError when the
        backend is down.
        """
        before = self.pairs_generated
        steps = self._open_steps(traces)
        while batch := list(islice(steps, BATCH)):
            for attempt in range(self.attempts):
                prompts = [self.wording.ask_mistake(trace.purpose, event) for trace, _, event in batch]
                replies = self._replies(prompts, self.seed + SEEDS * attempt)
                last = attempt == self.attempts - 1
                # The replies come first: an error behind the last one must still be raised.
                answered = zip(replies, batch, strict=True)
                batch = [step for reply, step in answered if not self._store(step, reply, last)]
                if not batch:
                    break
        return self.pairs_generated - before

    def _open_steps(self, traces: Iterable[Trace]) -> Iterator[Step]:
        for trace in traces:
            scores = trace.scores()
            if not scores:
                log.warning("trace %s has no score events: no pairs", trace.id)
            for i, event in scores:
                moved = abs(event.delta) >= self.min_delta
                if moved and not self.memory.settled(f"{trace.id}#{i}"):
                    yield trace, i, event

    def _replies(self, prompts: Sequence[str], seed: int) -> Iterator[Reply]:
        return ask(self.backend, prompts, answers.WRONG_SCHEMA, self.temperature, seed)

    def _store(self, step: Step, reply: Reply, last: bool) -> bool:
        """Keep what an answer gives; returns False where the step is to be asked about once more."""
        trace, i, event = step
        source = f"{trace.id}#{i}"
        try:
            wrong = read_reply(reply, self.wording, answers.WRONG_SCHEMA)
        except answers.Unusable as unusable:
            if not (last or reply.again):
                return False
            self.skipped[unusable.reason] += 1
            log.info("%s: no pair, %s", source, unusable.reason)
            if reply.again:
                self.failed[unusable.reason] += 1
            else:
                self.memory.skip(source, unusable.reason)
            return True
        pair = self._pair(trace, i, event, wrong)
        decisions = self.memory.propose(pair)
        for card, decision in zip(pair, decisions, strict=True):
            if decision.status != PROMOTED:
                self.turned_away[decision.label] += 1
                log.info("%s: %s %s, %s", source, card.kind, decision.status, decision.reason)
        self.pairs_generated += all(decision.status == PROMOTED for decision in decisions)
        return True

    def _pair(self, trace: Trace, i: int, event: ScoreEvent, wrong: dict) -> list[Card]:
        shared = {
            "situation": event.state_before,
            "action": event.action,
            "outcome": event.state_after,
            "phi_before": event.phi_before,
            "correct_phi": event.phi_after,
            "trace_id": trace.id,
            "event": i,
            "created_by": f"self_taught/{self.backend.name}",
            "trust": TRUST,
            "round": self.round,
        }
        right = Card(kind=CALIBRATION, phi_after=event.phi_after, reasoning=event.reasoning, **shared)
        mistaken = Card(
            kind=FAILURE,
            phi_after=wrong["wrong_phi_after"],
            reasoning=wrong["wrong_reasoning"],
            mistake_type=wrong["mistake_type"],
            **shared,
        )
        return [right, mistaken]


def read_reply(reply: Reply, wording: Wording, schema: dict) -> dict:
    """The answer in a reply; one cut off by the token limit is `truncated` unless its answer is whole."""
    if reply.problem and reply.problem != "truncated":
        raise answers.Unusable(reply.problem)
    try:
        return wording.read(reply.text, schema)
    except answers.Unusable as unusable:
        raise answers.Unusable(reply.problem or unusable.reason) from None
