"""Arms that take the gradient under another prompt: a sentence behind the user's message."""

from typing import Annotated

from pydantic import Field

from projected_grpo.arms import Arm, ArmKnobs, Messages, MustGive
from projected_grpo.environment.prompts import PERMISSION


class PromptKnobs(ArmKnobs):
    """What stands behind the user's message."""

    sentence: Annotated[str, Field(min_length=1, max_length=1000)] = PERMISSION


class Prompted(Arm):
    """Trains under the sentence; deployment never sees it."""

    Knobs = PromptKnobs
    family = "prompt"

    @classmethod
    def must_give(cls, knobs: PromptKnobs) -> MustGive:
        return "a sentence"

    def train_prompt(self, messages: Messages) -> Messages:
        *before, last = messages
        return [*before, {**last, "content": f"{last['content']}\n{self.knobs.sentence}"}]
