"""A graded rollout: what training holds of one completion, live or from the teacher pool."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Graded:
    """One completion: tokens, its sampling log-probs (`[tokens]`), and its row: facts of the verdict, text, whatever

    the pool stored with it.
    """

    tokens: list[int]
    logprobs: list[float] | None
    row: dict
