"""The memory gate: which candidate cards a critic may learn from.

It rejects what is no evaluation or teaches nothing, and quarantines what a person should look at: text that
speaks to the reader instead of about the code, and a claim that contradicts a promoted card. It is no defence
against a well-hidden injection: it knows the plain forms only.
"""

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from projected_grpo.evaluator.cards import CALIBRATION, FAILURE, Card, normalised
from projected_grpo.evaluator.traces import MAX_PHI

PROMOTED, QUARANTINED, REJECTED = "promoted", "quarantined", "rejected"
TOLERANCE = 0.5  # a wrong score must differ from the correct one by more points than this
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


class Decision(NamedTuple):
    """What the gate did with a candidate and why."""

    status: str
    reason: str

    @property
    def label(self) -> str:
        """Status and kind of reason, to count by."""
        return f"{self.status}: {self.reason.split(':')[0]}"


def decide(card: Card, content: Collection[str], truths: Mapping[str, list[float]]) -> Decision:
    """Decide on `card`, given the content keys of the cards already decided on and, per situation key, the
    scores of the promoted `critic_calibration` cards.
    """
    if problem := _unfit(card):
        return Decision(REJECTED, problem)
    if card.content_key() in content:
        return Decision(REJECTED, "duplicate: a card with the same normalised content was decided on before")
    texts = (card.situation, card.action, card.outcome, card.reasoning, card.mistake_type)
    if found := INJECTION.search(" ".join(map(normalised, texts))):
        return Decision(QUARANTINED, f"prompt injection: {found.group(0)[:60]!r}")
    for truth in truths.get(card.situation_key(), []):
        if abs(truth - card.correct_phi) > TOLERANCE:
            reason = f"conflict: a promoted card scores the same step {truth:g}, not {card.correct_phi:g}"
            return Decision(QUARANTINED, reason)
    return Decision(PROMOTED, "passed every check")


def _unfit(card: Card) -> str:
    phi, correct = card.phi_after, card.correct_phi
    if not 0 <= phi <= MAX_PHI:
        return f"out of range: phi_after = {phi:g}, allowed: 0-{MAX_PHI:g}"
    for name in ("situation", "reasoning"):
        if not normalised(getattr(card, name)):
            return f"schema: {name} is empty"
    if len(card.reasoning) > MAX_REASONING:
        return f"schema: reasoning has more than {MAX_REASONING} characters"
    if card.kind == FAILURE and abs(phi - correct) <= TOLERANCE:
        return f"not wrong: {phi:g} is within {TOLERANCE:g} of the correct {correct:g}"
    if card.kind == FAILURE and not card.mistake_type:
        return "schema: a failure pattern needs a mistake type"
    if card.kind == CALIBRATION and phi != correct:
        return "schema: a calibration card carries the correct score"
    return ""
