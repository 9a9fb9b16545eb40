"""What the small critic is shown: believing evaluations, wrong ones, and later the promoted cards.

The uncalibrated critic learns to believe the grader; neither the weak detector nor the oracle teaches it
anything. It learns to write wrong evaluations from templates, one per kind of mistake: it is 0.9 M parameters
and could not write them unaided. What it then writes about other problems is its own.
"""

import random
from collections.abc import Sequence

from projected_grpo.self_taught.answers import MISTAKES
from projected_grpo.self_taught.cards import Card
from projected_grpo.self_taught.prompts import Wording
from projected_grpo.self_taught.traces import SOLVED, ScoreEvent, Trace, believed_score, shown

INTENTIONS, INFLATED, IGNORING, SCALE = MISTAKES
Example = tuple[str, str]  # prompt, completion


def demonstrations(traces: Sequence[Trace], wording: Wording, seed: int) -> list[Example]:
    """Two examples per trace: an evaluation that believes the grader, and a wrong evaluation by template."""
    chance = random.Random(seed)
    examples = []
    for trace in traces:
        for _, event in trace.scores():
            examples.append((wording.ask_score(trace.purpose, event), wording.evaluation(*believed(event))))
            phi, mistake = _mistake(event, chance)
            wrong = wording.wrong_evaluation(phi, mistake, mistake)
            examples.append((wording.ask_mistake(trace.purpose, event), wrong))
    return examples


def lessons(
    pairs: Sequence[tuple[Card, Card]], purpose: str, wording: Wording, cards_in_context: int
) -> list[Example]:
    """One example per card pair: the correct evaluation, asked for with the nearest other cards in the
    context.
    """
    examples = []
    for right, _ in pairs:
        event = ScoreEvent(
            right.situation, right.action, right.outcome, right.phi_before, right.phi_after, right.reasoning
        )
        others = nearest(event, pairs, cards_in_context, without=right.trace_id)
        prompt = wording.ask_score(purpose, event, others)
        examples.append((prompt, wording.evaluation(right.phi_after, right.reasoning)))
    return examples


def nearest(
    event: ScoreEvent, pairs: Sequence[tuple[Card, Card]], n: int, without: str = ""
) -> list[tuple[Card, Card]]:
    """The n card pairs whose code and outcome share most words with the event's (Jaccard index), nearest
    last.
    """
    words = _words(event.action, event.state_after)

    def similarity(pair: tuple[Card, Card]) -> tuple[float, str]:
        others = _words(pair[0].action, pair[0].outcome)
        return len(words & others) / max(1, len(words | others)), pair[0].id

    candidates = [pair for pair in pairs if pair[0].trace_id != without]
    return sorted(candidates, key=similarity)[len(candidates) - min(n, len(candidates)) :]


def believed(event: ScoreEvent) -> tuple[float, str]:
    """The evaluation of one who believes what the grader showed."""
    return believed_score(
        can_compile=event.state_after != shown(False, False), passed=event.state_after == shown(True, True)
    )


def _mistake(event: ScoreEvent, chance: random.Random) -> tuple[float, str]:
    """A wrong score with its kind of mistake, made up from the correct score."""
    if event.phi_after >= SOLVED:
        return chance.choice([(1, IGNORING), (2, IGNORING), (5, SCALE)])
    return chance.choice([(7, INTENTIONS), (9, INFLATED), (5, SCALE), (10, IGNORING)])


def _words(*texts: str) -> set[str]:
    return set(" ".join(texts).split())
