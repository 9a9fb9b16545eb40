"""Memory cards: one evaluation each, the correct one of a contrast pair or the wrong one."""

import dataclasses
import hashlib
import unicodedata
from dataclasses import dataclass

CALIBRATION = "critic_calibration"
FAILURE = "failure_pattern"
KINDS = (CALIBRATION, FAILURE)
TRUST = 0.7


@dataclass(frozen=True)
class Card:
    """What a critic should remember about one scored step.

    `phi_after` is the score that this evaluation gives (0-10), `correct_phi` the correct one: they are equal
    on a `critic_calibration` card and differ on a `failure_pattern` card. `event` is the event's position in
    the trace.
    """

    kind: str
    situation: str
    action: str
    outcome: str
    phi_before: float
    phi_after: float
    correct_phi: float
    reasoning: str
    trace_id: str
    event: int
    created_by: str
    mistake_type: str = ""
    scope: str = "critic"
    trust: float = TRUST
    round: int = 0

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
        return _digest(*(normalised(text) for text in (self.situation, self.action, self.outcome)))

    def content_key(self) -> str:
        """A digest of the whole evaluation in normalised words: two cards that share it say the same."""
        words = (self.kind, self.situation, self.action, self.outcome, self.reasoning, self.mistake_type)
        return _digest(*(normalised(str(text)) for text in words), str(self.phi_after))

    def to_dict(self) -> dict:
        return dataclasses.asdict(self)


def normalised(text: str) -> str:
    """Text without differences of case, width, invisible characters or spacing."""
    text = unicodedata.normalize("NFKC", text)
    visible = "".join(c for c in text if unicodedata.category(c) != "Cf")
    return " ".join(visible.casefold().split())


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
