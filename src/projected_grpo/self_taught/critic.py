"""Critics: a backend asked for scores, with memory cards in its context; and the small one that is trained,
too.

The embedded critic is a LoRA on the small base model. It is trained in stages: first on demonstrations by an
evaluator that believes the grader (the uncalibrated critic), then, round by round, on the promoted cards. The
weights of all stages stay loaded, so that before and after are measured side by side.
"""

import logging
import tempfile
from collections.abc import Sequence
from pathlib import Path

from projected_grpo.self_taught import answers
from projected_grpo.self_taught.backends import Backend, NoStructuredOutput, Reply
from projected_grpo.self_taught.cards import Card
from projected_grpo.self_taught.evaluator import read_reply
from projected_grpo.self_taught.examples import lessons, nearest
from projected_grpo.self_taught.local import LocalBackend
from projected_grpo.self_taught.prompts import Wording
from projected_grpo.self_taught.traces import MAX_PHI, Trace
from projected_grpo.self_taught.training import Training, train_lora

log = logging.getLogger(__name__)
UNCALIBRATED = "default"  # PEFT's name of the adapter that a model is loaded with


class Critic:
    """Scores traces with `backend`; `cards_in_context` card pairs stand before each question."""

    def __init__(self, backend: Backend, wording: Wording, cards_in_context: int, seed: int):
        self.backend, self.wording = backend, wording
        self.cards_in_context, self.seed = cards_in_context, seed

    def evaluate(
        self, traces: Sequence[Trace], pairs: Sequence[tuple[Card, Card]] = ()
    ) -> list[float | None]:
        """The score of each trace's last score event, greedily decoded; None for an unusable answer."""
        prompts = []
        for trace in traces:
            event = trace.scores()[-1][1]
            cards = nearest(event, pairs, self.cards_in_context, without=trace.id)
            prompts.append(self.wording.ask_score(trace.purpose, event, cards))
        try:
            replies = list(
                self.backend.generate_structured(prompts, answers.EVALUATION_SCHEMA, 0.0, self.seed)
            )
        except NoStructuredOutput:
            replies = list(self.backend.generate(prompts, 0.0, self.seed))
        return [_score(reply, self.wording) for reply in replies]


class TrainedCritic(Critic):
    """The embedded critic: `evaluate` uses the uncalibrated weights, `evaluate_calibrated` the latest ones."""

    backend: LocalBackend

    def __init__(
        self,
        backend: LocalBackend,
        base: str,
        adapter: str,
        training: Training,
        wording: Wording,
        cards_in_context: int,
        seed: int,
    ):
        super().__init__(backend, wording, cards_in_context, seed)
        self.base, self.adapter, self.training = base, adapter, training
        self.stage = UNCALIBRATED
        self._folder = tempfile.TemporaryDirectory(prefix="critic-")

    def calibrate(self, pairs: Sequence[tuple[Card, Card]], purpose: str, round: int) -> float:
        """Go on training the latest weights on the cards (at least one pair); returns the mean loss."""
        examples = lessons(pairs, purpose, self.wording)
        stage = f"round{round}"
        out = Path(self._folder.name) / stage
        loss = train_lora(self.base, self.adapter, examples, self.training, self.seed + round, out)
        self.adapter, self.stage = str(out), stage
        self.backend.model.load_adapter(out, stage)
        self.backend.model.set_adapter(UNCALIBRATED)
        log.info("round %d: trained on %d cards, loss %.3f", round, len(examples), loss)
        return loss

    def evaluate_calibrated(self, traces: Sequence[Trace]) -> list[float | None]:
        """As `evaluate`, with the latest weights and no cards in the context: they have learned from the
        cards.
        """
        self.backend.model.set_adapter(self.stage)
        scores = self.evaluate(traces)
        self.backend.model.set_adapter(UNCALIBRATED)
        return scores


def _score(reply: Reply, wording: Wording) -> float | None:
    try:
        phi = read_reply(reply, wording, answers.EVALUATION_SCHEMA)["phi_after"]
    except answers.Unusable:
        return None
    return phi if 0 <= phi <= MAX_PHI else None
