"""The self-taught evaluator: contrast pairs for a critic out of the agent's own traces, stored as memory cards.

For each score event that moved the score, a backend writes a plausible but wrong evaluation; the correct one
is the event's own. No human label enters, and nothing is invented: an unusable answer is skipped, counted and
logged.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from projected_grpo.evaluator.answers import Unusable, WrongEvaluation
from projected_grpo.evaluator.backends import Backend, Reply
from projected_grpo.evaluator.cards import CALIBRATION, FAILURE, Card
from projected_grpo.evaluator.gate import PROMOTED
from projected_grpo.evaluator.memory import Memory
from projected_grpo.evaluator.prompts import FULL, Wording
from projected_grpo.evaluator.traces import Trace

log = logging.getLogger(__name__)
BATCH = 1024  # events asked about before the next traces are read
SEEDS = 1_000_003  # between the seeds of two attempts, apart from those of rounds and replications

Step = tuple[Trace, int]  # a trace and the position of one of its events


@dataclass
class SelfTaughtEvaluator:
    """Asks `backend` for wrong evaluations and proposes both halves of each pair to `memory`.

    `min_delta`: score events that changed phi by less are left out. `attempts`: how often a step is asked
    about, with another seed, while its answer is unusable. Unusable answers are in the memory, by reason; those
    that asking later may help are counted in `failed` instead.
    """

    backend: Backend
    memory: Memory
    min_delta: float = 0.5
    wording: Wording = FULL
    temperature: float = 1.0
    seed: int = 0
    attempts: int = 1
    round: int = 0
    failed: Counter[str] = field(default_factory=Counter)

    def generate(self, traces: Iterable[Trace]) -> int:
        """Make the pairs of some traces; returns how many have both their cards promoted.

        Each pair is stored as soon as its answer is there, and steps that the memory has settled before are
        not asked about again: an interrupted batch goes on where it stopped. Raises UserError when the
        backend is down.
        """
        made, steps, schema = 0, self._open_steps(traces), WrongEvaluation.model_json_schema()
        while batch := list(islice(steps, BATCH)):
            for attempt in range(self.attempts):
                prompts = [self.wording.ask_mistake(trace.purpose, trace.events[i]) for trace, i in batch]
                seed, last = self.seed + SEEDS * attempt, attempt == self.attempts - 1
                replies = self.backend.answer(prompts, schema, self.temperature, seed)
                again = []
                # The replies come first: an error behind the last one must still be raised.
                for reply, step in zip(replies, batch, strict=True):
                    try:
                        made += self._store(*step, self.wording.read(reply, WrongEvaluation))
                    except Unusable as unusable:
                        if last or reply.again:
                            self._skip(*step, reply, unusable.reason)
                        else:
                            again.append(step)
                if not (batch := again):
                    break
        return made

    def _open_steps(self, traces: Iterable[Trace]) -> Iterator[Step]:
        for trace in traces:
            if not trace.events:
                log.warning("trace %s has no score events: no pairs", trace.id)
            for i, event in enumerate(trace.events):
                if abs(event.delta) >= self.min_delta and not self.memory.settled(f"{trace.id}#{i}"):
                    yield trace, i

    def _skip(self, trace: Trace, i: int, reply: Reply, reason: str) -> None:
        log.info("%s#%d: no pair, %s", trace.id, i, reason)
        if reply.again:
            self.failed[reason] += 1
        else:
            self.memory.skip(f"{trace.id}#{i}", reason)

    def _store(self, trace: Trace, i: int, wrong: WrongEvaluation) -> bool:
        """Propose both cards; returns whether both were promoted."""
        event, by = trace.events[i], {"created_by": f"self_taught/{self.backend.name}", "round": self.round}
        right = {"kind": CALIBRATION, "phi_after": event.phi_after, "reasoning": event.reasoning}
        mistaken = {"kind": FAILURE, "phi_after": wrong.wrong_phi_after, "reasoning": wrong.wrong_reasoning}
        mistaken["mistake_type"] = wrong.mistake_type
        decisions = self.memory.propose([Card.of(trace, i, **said, **by) for said in (right, mistaken)])
        for kind, (status, reason) in zip((CALIBRATION, FAILURE), decisions, strict=True):
            if status != PROMOTED:
                log.info("%s#%d: %s %s, %s", trace.id, i, kind, status, reason)
        return all(decision.status == PROMOTED for decision in decisions)
