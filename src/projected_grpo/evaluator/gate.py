"""The memory gate: which candidate cards a critic may learn from.

It rejects what is no evaluation or teaches nothing, and quarantines what a person should look at: text that
speaks to the reader instead of about the code, and a claim that contradicts a promoted card. It is no defence
against a well-hidden injection: it knows the plain forms only.
"""

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from projected_grpo.evaluator.cards import CALIBRATION, FAILURE, KINDS, Card, normalised
from projected_grpo.evaluator.traces import MAX_PHI

PROMOTED, QUARANTINED, REJECTED = "promoted", "quarantined", "rejected"
MAX_REASONING = 2000  # characters; a longer one is a runaway generation
INJECTION = re.compile(
    r"<\|[a-z_]+\|>|\[/?inst\]|</?(?:system|assistant|user)>"
    r"|\b(?:ignore|disregard|forget|override)\b.{0,30}\b(?:instruction|rule|prompt|guideline|above|previous)"
    r"|\b(?:new|updated|real) instructions?\b|\byou are now\b|\bsystem prompt\b|\b(?:system|assistant)\s*:"
    r"|\b(?:note|message|instruction)s? (?:to|for) (?:the )?"
    r"(?:grader|critic|judge|evaluator|reviewer|model|ai)\b"
    r"|\b(?:always|must|please) (?:give|score|rate|award|assign)\b"
    r".{0,40}\b(?:10|ten|full|max)"
)


@dataclass(frozen=True)
class Decision:
    """What the gate did with a candidate and why."""

    status: str
    reason: str

    @property
    def label(self) -> str:
        """Status and kind of reason, to count by."""
        return f"{self.status}: {self.reason.split(':')[0]}"


@dataclass(frozen=True)
class Gate:
    """`tolerance`: a wrong score must differ from the correct one by more than this many points of 0-10."""

    tolerance: float = 0.5

    def decide(self, card: Card, content: Collection[str], truths: Mapping[str, list[float]]) -> Decision:
        """Decide on `card`, given the content keys of the cards already decided on and, per situation key,
        the scores of the promoted `critic_calibration` cards.
        """
        problem = self._malformed(card)
        if problem:
            return Decision(REJECTED, problem)
        if card.content_key() in content:
            return Decision(
                REJECTED, "duplicate: a card with the same normalised content was decided on before"
            )
        found = INJECTION.search(" ".join(normalised(text) for text in _texts(card)))
        if found:
            return Decision(QUARANTINED, f"prompt injection: {found.group(0)[:60]!r}")
        for truth in truths.get(card.situation_key(), []):
            far = abs(truth - card.correct_phi) > self.tolerance
            if far:
                return Decision(
                    QUARANTINED,
                    f"conflict: a promoted card scores the same step {truth:g}, not {card.correct_phi:g}",
                )
        return Decision(PROMOTED, "passed every check")

    def _malformed(self, card: Card) -> str:
        if card.kind not in KINDS:
            return f"schema: kind {card.kind!r}, allowed: {', '.join(KINDS)}"
        for name in ("phi_before", "phi_after", "correct_phi", "trust"):
            value, top = getattr(card, name), 1.0 if name == "trust" else MAX_PHI
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                return f"schema: {name} is no finite number"
            if not 0 <= value <= top:
                return f"out of range: {name} = {value:g}, allowed: 0-{top:g}"
        if not all(isinstance(text, str) for text in (*_texts(card), card.trace_id, card.created_by)):
            return "schema: a text field is no text"
        for name in ("situation", "reasoning", "trace_id", "created_by"):
            if not getattr(card, name).strip():
                return f"schema: {name} is empty"
        if len(card.reasoning) > MAX_REASONING:
            return f"schema: reasoning has more than {MAX_REASONING} characters"
        if any("\ud800" <= c <= "\udfff" for text in _texts(card) for c in text):
            return "schema: text with lone surrogates"
        error, correct = abs(card.phi_after - card.correct_phi), card.correct_phi
        if card.kind == FAILURE and error <= self.tolerance:
            return f"not wrong: {card.phi_after:g} is within {self.tolerance:g} of the correct {correct:g}"
        if card.kind == FAILURE and (card.scope != "critic" or not card.mistake_type):
            return "schema: a failure pattern needs scope 'critic' and a mistake type"
        if card.kind == CALIBRATION and error > 0:
            return "schema: a calibration card carries the correct score"
        return ""


def _texts(card: Card) -> tuple[str, ...]:
    return (card.situation, card.action, card.outcome, card.reasoning, card.mistake_type)
