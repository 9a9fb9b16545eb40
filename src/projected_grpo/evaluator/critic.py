"""Critics: a backend asked for scores, with memory cards in its context; and the small one that is trained,
too.

The embedded critic is a LoRA on the small base model. It is trained in stages: first on demonstrations by an
evaluator that believes the grader (the uncalibrated critic), then, round by round, on the promoted cards. The
weights of all stages stay loaded, so that before and after are measured side by side.
"""

import itertools
import logging
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from projected_grpo.errors import UserError
from projected_grpo.evaluator import answers
from projected_grpo.evaluator.backends import Backend, Reply, ask
from projected_grpo.evaluator.cards import Card
from projected_grpo.evaluator.evaluator import read_reply
from projected_grpo.evaluator.examples import lessons, nearest
from projected_grpo.evaluator.local import LocalBackend
from projected_grpo.evaluator.prompts import Wording
from projected_grpo.evaluator.traces import MAX_PHI, Trace
from projected_grpo.evaluator.training import Training, train_lora

log = logging.getLogger(__name__)
UNCALIBRATED = "default"  # PEFT's name of the adapter that a model is loaded with


class Evaluation(NamedTuple):
    """A critic's score (0-10), or None and in one word why there is none."""

    phi: float | None
    problem: str = ""


class Critic:
    """Scores traces with `backend`; `cards_in_context` card pairs stand before each question."""

    def __init__(self, backend: Backend, wording: Wording, cards_in_context: int, seed: int):
        self.backend, self.wording = backend, wording
        self.cards_in_context, self.seed = cards_in_context, seed

    def evaluate(self, traces: Sequence[Trace], pairs: Sequence[tuple[Card, Card]] = ()) -> list[Evaluation]:
        """The score of each trace's last score event, greedily decoded.

        What failed without being the critic's answer (a timeout, a 500) is asked about once more: it must not
        count as the critic's failure. Raises UserError where that fails too.
        """
        prompts = []
        for trace in traces:
            event = trace.scores()[-1][1]
            cards = nearest(event, pairs, self.cards_in_context, without=trace.id)
            prompts.append(self.wording.ask_score(trace.purpose, event, cards))
        replies = self._replies(prompts)
        if again := [i for i, reply in enumerate(replies) if reply.again]:
            for i, reply in zip(again, self._replies([prompts[i] for i in again]), strict=True):
                replies[i] = reply
        if failed := Counter(reply.problem for reply in replies if reply.again):
            raise UserError(
                f"self_taught: {failed.total()} of {len(traces)} evaluations failed twice ({listed(failed)}); "
                "finished pairs are kept, run again to go on"
            )
        evaluations = [_evaluation(reply, self.wording) for reply in replies]
        if unusable := problems(evaluations):
            log.info("%s: %d evaluations, unusable: %s", self.backend.name, len(traces), listed(unusable))
        return evaluations

    def _replies(self, prompts: Sequence[str]) -> list[Reply]:
        return list(ask(self.backend, prompts, answers.EVALUATION_SCHEMA, 0.0, self.seed))


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
        """Go on training the latest weights on the cards (at least one pair); returns the mean loss.

        Every correct score is shown as often as any other: most cards give one, and a critic that learned from
        them as they come would learn to give that score to everything.
        """
        examples = lessons(_balanced(pairs), purpose, self.wording)
        stage = f"round{round}"
        out = Path(self._folder.name) / stage
        loss = train_lora(self.base, self.adapter, examples, self.training, self.seed + round, out)
        self.adapter, self.stage = str(out), stage
        self.backend.model.load_adapter(out, stage)
        self.backend.model.set_adapter(UNCALIBRATED)
        log.info("round %d: trained on %d cards, loss %.3f", round, len(examples), loss)
        return loss

    def evaluate_calibrated(self, traces: Sequence[Trace]) -> list[Evaluation]:
        """As `evaluate`, with the latest weights and no cards in the context: they have learned from the
        cards.
        """
        self.backend.model.set_adapter(self.stage)
        scores = self.evaluate(traces)
        self.backend.model.set_adapter(UNCALIBRATED)
        return scores


def problems(evaluations: Sequence[Evaluation]) -> Counter[str]:
    """How many evaluations have no score, by reason."""
    return Counter(evaluation.problem for evaluation in evaluations if evaluation.problem)


def listed(counts: Counter[str]) -> str:
    """`no_json: 3, refusal: 1`."""
    return ", ".join(f"{reason}: {n}" for reason, n in sorted(counts.items()))


def _balanced(pairs: Sequence[tuple[Card, Card]]) -> list[tuple[Card, Card]]:
    """The pairs with those of rarer correct scores repeated, until all scores are equally frequent."""
    by_score: dict[float, list[tuple[Card, Card]]] = {}
    for pair in pairs:
        by_score.setdefault(pair[0].phi_after, []).append(pair)
    most = max(map(len, by_score.values()))
    return [pair for group in by_score.values() for pair in itertools.islice(itertools.cycle(group), most)]


def _evaluation(reply: Reply, wording: Wording) -> Evaluation:
    try:
        phi = read_reply(reply, wording, answers.EVALUATION_SCHEMA)["phi_after"]
    except answers.Unusable as unusable:
        return Evaluation(None, unusable.reason)
    return Evaluation(phi) if 0 <= phi <= MAX_PHI else Evaluation(None, "out_of_range")
