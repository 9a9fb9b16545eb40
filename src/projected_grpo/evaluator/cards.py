"""Memory cards: one evaluation each, the correct one of a contrast pair or the wrong one."""

import hashlib
import unicodedata
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from projected_grpo.evaluator.traces import Phi, ScoreEvent, Trace

CALIBRATION = "critic_calibration"
FAILURE = "failure_pattern"
TRUST = 0.7
READ = ("pattern", "content", "strategy", "scope")  # how a card reads, made of its fields


class Card(BaseModel):
    """What a critic should remember about one scored step.

    `phi_after` is the score that this evaluation gives, `correct_phi` the correct one: they are equal on a
    `critic_calibration` card and differ on a `failure_pattern` card. `event` is the event's position in the trace;
    `mode` and `flagged` are the trace's.
    """

    # With a length, any, pydantic looks at the text itself and refuses lone surrogates.
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False, str_min_length=0)

    kind: Literal["critic_calibration", "failure_pattern"]
    situation: str
    action: str
    outcome: str
    phi_before: Phi
    phi_after: float  # as a model said it: whether it is a score is the gate's business
    correct_phi: Phi
    reasoning: str
    trace_id: str
    event: int
    created_by: str
    mistake_type: str = ""
    mode: str = ""
    flagged: bool = False
    trust: float = Field(TRUST, ge=0, le=1)
    round: int = 0
    pattern: ClassVar[str] = "When evaluating state transitions"

    @classmethod
    def of(cls, trace: Trace, i: int, **evaluation: Any) -> "Card":
        """A card on event `i` of a trace: the one place where a source's fields go to its cards."""
        event = trace.events[i]
        return cls(
            situation=event.state_before,
            action=event.action,
            outcome=event.state_after,
            phi_before=event.phi_before,
            correct_phi=event.phi_after,
            trace_id=trace.id,
            mode=trace.mode,
            flagged=trace.flagged,
            event=i,
            **evaluation,
        )

    @property
    def content(self) -> str:
        """The scoring example, right or wrong, of the step that the card's other fields hold."""
        head = (
            "CORRECT scoring example"
            if self.kind == CALIBRATION
            else f"WRONG scoring example ({self.mistake_type})"
        )
        return f"{head}: from {self.phi_before:g} to {self.phi_after:g}"

    @property
    def strategy(self) -> str:
        """What to do about it."""
        return f"{'Score like this' if self.kind == CALIBRATION else 'AVOID this mistake'}: {self.reasoning}"

    @property
    def scope(self) -> str:
        """Whose mistake it is: of a failure the critic's, else nobody's."""
        return "critic" if self.kind == FAILURE else ""

    def scored(self) -> ScoreEvent:
        """The step with this card's evaluation."""
        return ScoreEvent(
            self.situation, self.action, self.outcome, self.phi_before, self.phi_after, self.reasoning
        )

    @property
    def source(self) -> str:
        """Which scored step the card is about."""
        return f"{self.trace_id}#{self.event}"

    @property
    def id(self) -> str:
        """A short digest of content and source."""
        return _digest(self.content_key(), self.source)

    def situation_key(self) -> str:
        """A digest of what was evaluated, in normalised words."""
        return _digest(*map(normalised, (self.situation, self.action, self.outcome)))

    def content_key(self) -> str:
        """A digest of the whole evaluation in normalised words: two cards that share it say the same."""
        words = (self.kind, self.situation, self.action, self.outcome, self.reasoning, self.mistake_type)
        return _digest(*map(normalised, words), str(self.phi_after))


CardPair = tuple[Card, Card]  # the correct evaluation and the wrong one of the same step


def normalised(text: str) -> str:
    """Text without differences of case, width, invisible characters or spacing."""
    text = unicodedata.normalize("NFKC", text)
    visible = "".join(c for c in text if unicodedata.category(c) != "Cf")
    return " ".join(visible.casefold().split())


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
