"""Critics: a backend asked for scores, with memory cards in its context; and the small one that is trained, too.

The embedded critic is a LoRA on the small base model. It is trained in stages: first on demonstrations by an
evaluator that believes the grader (the uncalibrated critic), then, round by round, on the promoted cards. The
weights of all stages stay loaded, so that before and after are measured side by side.
"""

import logging
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from projected_grpo import files
from projected_grpo.cells.self_taught import CriticTraining
from projected_grpo.errors import UserError
from projected_grpo.evaluator.answers import Evaluation, Unusable
from projected_grpo.evaluator.backends import Backend, Reply
from projected_grpo.evaluator.cards import CardPair
from projected_grpo.evaluator.critic_lora import train_lora
from projected_grpo.evaluator.examples import lessons, nearest
from projected_grpo.evaluator.local import LocalBackend
from projected_grpo.evaluator.prompts import Wording
from projected_grpo.evaluator.traces import MAX_PHI, ScoreEvent, Trace

log = logging.getLogger(__name__)
UNCALIBRATED = "default"  # PEFT's name of the adapter that a model is loaded with
REFERENCE = "reference"
ADAPTER_FILES = ("adapter_config.json", "adapter_model.safetensors")


class Score(NamedTuple):
    """A critic's score (0-10), or None and in one word why there is none."""

    phi: float | None
    problem: str = ""


class Critic:
    """Scores traces with `backend`; `cards_in_context` card pairs stand before each question."""

    def __init__(self, backend: Backend, wording: Wording, cards_in_context: int, seed: int):
        self.backend, self.wording = backend, wording
        self.cards_in_context, self.seed = cards_in_context, seed

    def evaluate(self, traces: Sequence[Trace], pairs: Sequence[CardPair] = ()) -> list[Score]:
        """The score of each trace's last score event, greedily decoded.

        What failed without being the critic's answer (a timeout, a 500) is asked about once more: it must not
        count as the critic's failure. Raises UserError where that fails too.
        """
        prompts = []
        for trace in traces:
            cards = nearest(trace.last, pairs, self.cards_in_context, without=trace.id)
            prompts.append(self.wording.ask_score(trace.purpose, trace.last, cards))
        replies = self._replies(prompts)
        if again := [i for i, reply in enumerate(replies) if reply.again]:
            for i, reply in zip(again, self._replies([prompts[i] for i in again]), strict=True):
                replies[i] = reply
        if failed := Counter(reply.problem for reply in replies if reply.again):
            raise UserError(
                f"self_taught: {failed.total()} of {len(traces)} evaluations failed twice ({listed(failed)}); "
                "finished pairs are kept, run again to go on"
            )
        scores = [self._score(reply) for reply in replies]
        if unusable := problems(scores):
            log.info("%s: %d evaluations, unusable: %s", self.backend.name, len(traces), listed(unusable))
        return scores

    def latest(self, traces: Sequence[Trace], pairs: Sequence[CardPair]) -> list[Score]:
        """The scores of the critic as far as `pairs` have brought it."""
        return self.evaluate(traces, pairs)

    def _replies(self, prompts: Sequence[str]) -> list[Reply]:
        return list(self.backend.answer(prompts, Evaluation.model_json_schema(), 0.0, self.seed))

    def _score(self, reply: Reply) -> Score:
        try:
            phi = self.wording.read(reply, Evaluation).phi_after
        except Unusable as unusable:
            return Score(None, unusable.reason)
        return Score(phi) if 0 <= phi <= MAX_PHI else Score(None, "out_of_range")


class TrainedCritic(Critic):
    """The embedded critic: `evaluate` uses the uncalibrated weights, `latest` those that have learned most.

    `base` is its checkpoint, `adapter` the uncalibrated critic's PEFT folder; `backend` has both loaded.
    """

    backend: LocalBackend

    def __init__(self, *critic: Any, base: str, adapter: str, recipe: CriticTraining):
        super().__init__(*critic)
        self.base, self.adapter, self.recipe = base, adapter, recipe
        self.stage = UNCALIBRATED
        self._folder = tempfile.TemporaryDirectory(prefix="critic-")

    def calibrate(self, steps: Sequence[ScoreEvent], purpose: str, round: int) -> float:
        """Train the uncalibrated weights on these steps (at least one); returns the mean loss.

        All rounds begin alike and train for as long: they differ by their cards alone.
        """
        self.stage = f"round{round}"
        return self._train(steps, purpose, self.stage, self.seed + round)

    def learn_reference(self, steps: Sequence[ScoreEvent], purpose: str) -> None:
        """Train one more critic, apart from all rounds."""
        self._train(steps, purpose, REFERENCE, self.seed)

    def latest(self, traces: Sequence[Trace], pairs: Sequence[CardPair] = ()) -> list[Score]:
        """No cards stand in the context: the weights have learned from them."""
        return self.scores_of(self.stage, traces)

    def scores_of(self, stage: str, traces: Sequence[Trace]) -> list[Score]:
        """The scores of the weights of that stage (`REFERENCE`: of the critic apart)."""
        self.backend.model.set_adapter(stage)
        scores = self.evaluate(traces)
        self.backend.model.set_adapter(UNCALIBRATED)
        return scores

    def save(self, folder: Path) -> None:
        """Write the weights that have learned most as a PEFT folder."""
        source = Path(self.adapter if self.stage == UNCALIBRATED else self._folder.name + f"/{self.stage}")
        for name in ADAPTER_FILES:
            with files.atomic(folder / name) as temporary:
                shutil.copyfile(source / name, temporary)

    def _train(self, steps: Sequence[ScoreEvent], purpose: str, stage: str, seed: int) -> float:
        examples = lessons(steps, purpose, self.wording)
        out = Path(self._folder.name) / stage
        loss = train_lora(self.base, self.adapter, examples, self.recipe, seed, out)
        self.backend.model.load_adapter(out, stage)
        self.backend.model.set_adapter(UNCALIBRATED)
        log.info("%s: trained on %d examples, loss %.3f", stage, len(examples), loss)
        return loss


def problems(scores: Sequence[Score]) -> Counter[str]:
    """How many traces have no score, by reason."""
    return Counter(score.problem for score in scores if score.problem)


def listed(counts: Counter[str]) -> str:
    """`no_json: 3, refusal: 1`."""
    return ", ".join(f"{reason}: {n}" for reason, n in sorted(counts.items()))
