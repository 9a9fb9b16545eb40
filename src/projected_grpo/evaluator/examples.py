"""What the small critic is shown: believing evaluations, wrong ones, and later the promoted cards.

The uncalibrated critic learns to believe the grader; neither the weak detector nor the oracle teaches it
anything. It learns to write wrong evaluations from templates, one per kind of mistake: it is 0.9 M parameters
and could not write them unaided. What it then writes about other problems is its own.
"""

import dataclasses
import itertools
import random
from collections.abc import Sequence

from projected_grpo.evaluator.answers import MISTAKES
from projected_grpo.evaluator.cards import CardPair
from projected_grpo.evaluator.prompts import Wording
from projected_grpo.evaluator.traces import SOLVED, ScoreEvent, Trace, believed_score, shown, weak_score

INTENTIONS, INFLATED, IGNORING, SCALE = MISTAKES
# Every correct evaluation there is, with what the grader showed: score, reasoning, outcome.
VERDICTS = [(False, False, False), (True, False, False), (True, True, True), (True, True, False)]
GIVEN = [(*weak_score(*verdict), shown(*verdict[:2])) for verdict in VERDICTS]

Shown = tuple[str, str]  # prompt, completion


def demonstrations(traces: Sequence[Trace], wording: Wording, seed: int) -> list[Shown]:
    """Two examples per event: an evaluation that believes the grader, and a wrong evaluation by template.

    The correct evaluation that a wrong one is written to is drawn at random: the detector's verdict on the
    trace stays out of it, and every score is practised equally often.
    """
    chance = random.Random(seed)
    examples = []
    for trace in traces:
        for event in trace.events:
            examples.append((wording.ask_score(trace.purpose, event), wording.evaluation(*believed(event))))
            phi, reasoning, outcome = chance.choice(GIVEN)
            given = dataclasses.replace(event, phi_after=phi, reasoning=reasoning, state_after=outcome)
            answer = wording.wrong_evaluation(*_mistake(phi, chance))
            examples.append((wording.ask_mistake(trace.purpose, given), answer))
    return examples


def lessons(steps: Sequence[ScoreEvent], purpose: str, wording: Wording) -> list[Shown]:
    """One example per step: its correct evaluation. Rarer kinds are repeated until all are as frequent.

    Most steps have one score, and a critic that learned from them as they come would give that to everything.
    """
    by_kind: dict[tuple[float, str], list[ScoreEvent]] = {}
    for step in steps:
        by_kind.setdefault(step.kind, []).append(step)
    most = max(map(len, by_kind.values()), default=0)
    shown = [step for group in by_kind.values() for step in itertools.islice(itertools.cycle(group), most)]
    return [(wording.ask_score(purpose, s), wording.evaluation(s.phi_after, s.reasoning)) for s in shown]


def nearest(event: ScoreEvent, pairs: Sequence[CardPair], n: int, without: str = "") -> list[CardPair]:
    """The n card pairs whose code and outcome share most words with the event's (Jaccard index), nearest last.

    Those of the trace `without` do not count.
    """
    words = _words(event.action, event.state_after)

    def similarity(pair: CardPair) -> tuple[float, str]:
        others = _words(pair[0].action, pair[0].outcome)
        return len(words & others) / max(1, len(words | others)), pair[0].id

    candidates = [pair for pair in pairs if pair[0].trace_id != without]
    return sorted(candidates, key=similarity)[max(0, len(candidates) - n) :]


def believed(event: ScoreEvent) -> tuple[float, str]:
    """The evaluation of one who believes what the grader showed."""
    return believed_score(
        can_compile=event.state_after != shown(False, False), passed=event.state_after == shown(True, True)
    )


def _mistake(phi: float, chance: random.Random) -> tuple[float, str]:
    """A wrong score with its kind of mistake, made up from the correct score."""
    if phi >= SOLVED:
        return chance.choice([(1, IGNORING), (5, SCALE)])
    return chance.choice([(7, INTENTIONS), (9, INFLATED), (5, SCALE), (8, IGNORING)])


def _words(*texts: str) -> set[str]:
    return set(" ".join(texts).split())
