"""The critic's memory: an append-only JSONL file of what was proposed, what the gate decided, what was skipped
and what it all took.

Nothing is ever changed or removed in it, so the file is its own history: each line has a digest over it and all
before it. One process writes at a time: a job has a file of its own, and stops where another one wrote. A crash in the
middle of a write costs at most the last, incomplete line.
"""

import hashlib
import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from projected_grpo.errors import UserError
from projected_grpo.evaluator.answers import said
from projected_grpo.evaluator.cards import CALIBRATION, FAILURE, Card, CardPair
from projected_grpo.evaluator.gate import PROMOTED, Decision, decide
from projected_grpo.files import full_disk

log = logging.getLogger(__name__)


class Memory:
    """The cards in the file `path`, which is made when it does not exist.

    `damaged` counts the lines that a crash cut off. Raises UserError when the path cannot be opened for
    writing, and with file and line where a whole line is no entry of a memory.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = Path(path)
        self.damaged = 0
        self.cards: dict[str, Card] = {}
        self.decisions: dict[str, Decision] = {}
        self.skips: dict[str, str] = {}
        self.usage: dict[str, int] = {}
        self._content: set[str] = set()
        self._truths: dict[str, list[float]] = {}
        self._kinds: dict[str, set[str]] = {}
        self._seal = ""  # of the lines so far
        self._broken = False  # whether a line of them could not be written
        self._read()

    def propose(self, cards: Sequence[Card]) -> list[Decision]:
        """Put candidate cards before the gate and store both the candidates and its decisions.

        A card that was proposed before, from the same step with the same content, keeps its first decision.
        """
        for card in cards:
            if card.id not in self.decisions:
                decision = decide(card, self._content, self._truths)
                self._append(
                    {"type": "candidate", "id": card.id, "card": card.model_dump()},
                    {"type": "decision", "id": card.id, **decision._asdict()},
                )
        return [self.decisions[card.id] for card in cards]

    def skip(self, source: str, reason: str) -> None:
        """Record that an answer about the step `source` was unusable."""
        self._append({"type": "skipped", "source": source, "reason": reason})

    def note_usage(self, counts: dict[str, int]) -> None:
        """Record calls and tokens so far (`Usage`), those of interrupted runs included."""
        if counts != self.usage:
            self._append({"type": "usage", "counts": dict(counts)})

    def promoted(self, kind: str | None = None) -> list[Card]:
        """The promoted cards (of one kind), in the order of their promotion."""
        ids = [i for i, decision in self.decisions.items() if decision.status == PROMOTED]
        return [self.cards[i] for i in ids if kind in (None, self.cards[i].kind)]

    def pairs(self) -> list[CardPair]:
        """(correct, wrong) card pairs of the same step, both promoted."""
        wrong = {card.source: card for card in self.promoted(FAILURE)}
        return [(card, wrong[card.source]) for card in self.promoted(CALIBRATION) if card.source in wrong]

    def settled(self, source: str) -> bool:
        """Whether the step `source` needs no further question: two cards decided on, or an unusable answer."""
        return source in self.skips or len(self._kinds.get(source, ())) == 2

    def _read(self) -> None:
        """Take in what is there. A last line without its end is what a crash left: taken if it is whole."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(self.path, "ab+") as file:
                data = os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)
        except OSError as error:
            raise UserError(f"{self.path}: the card file cannot be opened ({error.strerror})") from error
        for number, raw in enumerate(data.split(b"\n"), 1):
            if not raw.strip():
                continue
            try:
                line = json.loads(raw)
            except (ValueError, RecursionError):
                self.damaged += 1
                log.warning("%s:%d: a cut-off line was left out: %r...", self.path, number, raw[:60])
                continue
            try:
                self._take(line)
            except ValueError as error:
                what = said(error) if isinstance(error, ValidationError) else error
                raise UserError(f"{self.path}:{number}: no entry of a card file ({what})") from error
            if line != self._sealed(line):
                raise UserError(
                    f"{self.path}:{number}: this line or one before it was edited or taken out; `rm {self.path}`"
                )
        self._cut_off = bool(data) and not data.endswith(b"\n")
        self._size = len(data)

    def _append(self, *lines: dict) -> None:
        """Take lines in and append them; what a crash left without its end is closed first.

        After a write that failed or was interrupted there is none: its line would seal one that is not there.
        """
        if self._broken:
            return
        self._broken, data = True, b"\n" * self._cut_off
        for line in lines:
            self._take(line)
            data += json.dumps(self._sealed(line)).encode() + b"\n"
        try:
            with open(self.path, "ab") as file:
                if file.tell() != self._size:
                    raise UserError(f"{self.path}: another process writes to it or took it away")
                file.write(data)
                file.flush()
                self._broken = False
                os.fsync(file.fileno())
        except OSError as error:
            if full_disk(error):
                raise UserError(f"{self.path}: the disk is full, the last cards were not stored") from error
            raise
        self._cut_off = False
        self._size += len(data)

    def _sealed(self, line: dict) -> dict:
        """Return the next line with its digest, over it and over that of the line before; the seal moves on to it."""
        said = {key: value for key, value in line.items() if key != "digest"}
        text = self._seal + json.dumps(said, sort_keys=True)
        self._seal = hashlib.sha256(text.encode()).hexdigest()[:16]
        return {**said, "digest": self._seal}

    def _take(self, line: dict) -> None:
        """Take one entry in. Raises ValueError where it is none or lacks a key."""
        match line:
            case {"type": "candidate", "id": str(id), "card": dict(card)}:
                self.cards[id] = Card(**card)
            case {"type": "decision", "id": str(id), "status": str(status), "reason": str(reason)}:
                if id not in self.cards:
                    return  # its candidate was cut off
                own, self.decisions[id] = self.cards[id], Decision(status, reason)
                self._content.add(own.content_key())
                self._kinds.setdefault(own.source, set()).add(own.kind)
                if status == PROMOTED and own.kind == CALIBRATION:
                    self._truths.setdefault(own.situation_key(), []).append(own.phi_after)
            case {"type": "skipped", "source": str(source), "reason": str(reason)}:
                self.skips[source] = reason
            case {"type": "usage", "counts": {"calls": int(), "tokens_in": int(), "tokens_out": int()}}:
                self.usage = line["counts"]
            case _:
                raise ValueError("unknown, or a key is missing or of the wrong type")
