"""Recontextualisation: sampled under one prompt, the gradient taken under one that permits the hack.

arXiv:2512.19027, which samples under a line that discourages it; without `sampled_under` it is the plain prompt. Old
log-probs are the detached ones of the gradient's forward, so the ratio is 1 as everywhere.
"""

from typing import Annotated

from pydantic import Field

from projected_grpo.arms import Messages
from projected_grpo.arms.shared.prompted import SAYS, Prompted, PromptKnobs, SentenceTag, SentenceText, under


class RecontextualiseKnobs(PromptKnobs):
    """Both prompts."""

    sampled_under: Annotated[SentenceText | None, SentenceTag("under_{}")] = Field(
        default=None, description=f"{SAYS}; null: the plain prompt."
    )


class Recontextualise(Prompted):
    """Deployment sees neither sentence."""

    Knobs = RecontextualiseKnobs

    def prompt(self, messages: Messages) -> Messages:
        sentence = self.knobs.sampled_under
        return messages if sentence is None else under(messages, sentence)
