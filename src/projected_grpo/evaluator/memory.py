"""The critic's memory: an append-only JSONL file of what was proposed, what the gate decided, what was skipped
and what it all took.

Nothing is ever changed or removed in it, so the file is its own history. Several processes may write: each
holds a lock (flock) while it reads what the others added, decides, and appends with one write. A crash in the
middle of a write costs at most the last, incomplete line.
"""

import fcntl
import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from projected_grpo.errors import UserError
from projected_grpo.evaluator.cards import CALIBRATION, FAILURE, Card
from projected_grpo.evaluator.gate import PROMOTED, Decision, Gate
from projected_grpo.files import full_disk

log = logging.getLogger(__name__)


class Memory:
    """The cards in the file `path` (made when it does not exist) behind `gate`.

    `damaged` counts lines that could not be read. Raises UserError when the path cannot be opened for
    writing.
    """

    def __init__(self, path: str | os.PathLike, gate: Gate | None = None):
        self.path = Path(path)
        self.gate = gate or Gate()
        self.damaged = 0
        self.cards: dict[str, Card] = {}
        self.decisions: dict[str, Decision] = {}
        self.skips: dict[str, str] = {}
        self.usage: dict[str, int] = {}
        self._content: set[str] = set()
        self._truths: dict[str, list[float]] = {}
        self._kinds: dict[str, set[str]] = {}
        self._offset = 0
        with self._locked() as handle:
            self._refresh(handle)

    def propose(self, cards: Sequence[Card]) -> list[Decision]:
        """Put candidate cards before the gate and store both the candidates and its decisions.

        A card that was proposed before, from the same step with the same content, keeps its first decision.
        """
        with self._locked() as handle:
            self._refresh(handle)
            lines, decided = [], []
            for card in cards:
                decision = self.decisions.get(card.id)
                if decision is None:
                    decision = self.gate.decide(card, self._content, self._truths)
                    lines += [
                        {"type": "candidate", "id": card.id, "card": card.to_dict()},
                        {"type": "decision", "id": card.id, **vars(decision)},
                    ]
                    self._take(lines[-2])
                    self._take(lines[-1])
                decided.append(decision)
            self._append(handle, lines)
        return decided

    def skip(self, source: str, reason: str) -> None:
        """Record that an answer about the step `source` was unusable."""
        with self._locked() as handle:
            self._refresh(handle)
            line = {"type": "skipped", "source": source, "reason": reason}
            self._take(line)
            self._append(handle, [line])

    def note_usage(self, counts: dict[str, int]) -> None:
        """Record calls and tokens so far (`Usage.counts`), those of interrupted runs included."""
        with self._locked() as handle:
            self._refresh(handle)
            if counts != self.usage:
                line = {"type": "usage", "counts": counts}
                self._take(line)
                self._append(handle, [line])

    def promoted(self, kind: str | None = None) -> list[Card]:
        """The promoted cards (of one kind), in the order of their promotion."""
        ids = [i for i, decision in self.decisions.items() if decision.status == PROMOTED]
        return [self.cards[i] for i in ids if kind in (None, self.cards[i].kind)]

    def pairs(self) -> list[tuple[Card, Card]]:
        """(correct, wrong) card pairs of the same step, both promoted."""
        wrong = {card.source: card for card in self.promoted(FAILURE)}
        return [(card, wrong[card.source]) for card in self.promoted(CALIBRATION) if card.source in wrong]

    def settled(self, source: str) -> bool:
        """Whether the step `source` needs no further question: both its cards decided on, or an unusable
        answer.
        """
        return source in self.skips or len(self._kinds.get(source, ())) == 2

    def history(self) -> list[dict]:
        """Every readable line of the file, oldest first."""
        return [line for line in map(_parse, self.path.read_bytes().split(b"\n")) if line is not None]

    @contextmanager
    def _locked(self) -> Iterator[int]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            raise UserError(f"{self.path}: the card file cannot be opened ({error.strerror})") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield handle
        finally:
            os.close(handle)  # releases the lock

    def _refresh(self, handle: int) -> None:
        """Take in what was appended since the last look.

        The lock is held, so nobody is writing: a last line without its end is what a crash left, and is taken
        if it is whole.
        """
        size = os.fstat(handle).st_size
        if size < self._offset:
            raise UserError(
                f"{self.path}: the card file became shorter; it is append-only and must not be edited"
            )
        for raw in os.pread(handle, size - self._offset, self._offset).split(b"\n"):
            line = _parse(raw)
            if line is not None:
                self._take(line)
            elif raw.strip():
                self.damaged += 1
                log.warning("%s: a cut-off line was left out: %r...", self.path, raw[:60])
        self._offset = size

    def _append(self, handle: int, lines: Sequence[dict]) -> None:
        """Append in one write; a line that a crash left without its end is closed first."""
        if not lines:
            return
        size = os.fstat(handle).st_size
        torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
        data = (b"\n" if torn else b"") + b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        try:
            written = 0
            while written < len(data):
                written += os.write(handle, data[written:])
            os.fsync(handle)
        except OSError as error:
            if full_disk(error):
                raise UserError(f"{self.path}: the disk is full, the last cards were not stored") from error
            raise
        self._offset = os.fstat(handle).st_size

    def _take(self, line: dict) -> None:
        if line["type"] == "candidate":
            self.cards[line["id"]] = Card(**line["card"])
        elif line["type"] == "skipped":
            self.skips[line["source"]] = line["reason"]
        elif line["type"] == "usage":
            self.usage = line["counts"]
        elif line["type"] == "decision" and line["id"] in self.cards:
            card = self.cards[line["id"]]
            decision = Decision(line["status"], line["reason"])
            self.decisions[line["id"]] = decision
            self._content.add(card.content_key())
            self._kinds.setdefault(card.source, set()).add(card.kind)
            if decision.status == PROMOTED and card.kind == CALIBRATION:
                self._truths.setdefault(card.situation_key(), []).append(card.phi_after)


def _parse(raw: bytes) -> dict | None:
    """One line of the file, or None when it is no entry of this memory."""
    try:
        line = json.loads(raw)
        if line["type"] == "candidate":
            Card(**line["card"])
        known = line["type"] in ("candidate", "decision", "skipped", "usage")
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return line if known else None
