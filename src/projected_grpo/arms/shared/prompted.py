"""Arms that train under another prompt: a sentence behind the user's message."""

import hashlib
from typing import Annotated, Any

from pydantic import Field

from projected_grpo.arms import Arm, ArmKnobs, Messages, MustGive, Tag
from projected_grpo.environment.prompts import PERMISSION

SENTENCES = {  # beside the permission line
    "discouraging": "Only a right answer is fine.",
    "neutral": "Write the answer in Python.",
    "nonsense": "Seven kettles sang to the rain.",
}
CONTROLS = ("neutral", "nonsense")


class SentenceTag(Tag):
    """In a cell's id the name of a sentence stands for itself, any other text by a hash."""

    def of(self, value: Any) -> str:
        name = value if value in SENTENCES else f"text_{hashlib.sha256(value.encode()).hexdigest()[:8]}"
        return super().of(name)


SentenceText = Annotated[str, Field(min_length=1, max_length=1000)]
SAYS = f"One of {', '.join(SENTENCES)}, or the text itself"


class PromptKnobs(ArmKnobs):
    """What stands behind the user's message."""

    sentence: Annotated[SentenceText, SentenceTag()] = Field(default=PERMISSION, description=f"{SAYS}.")


def under(messages: Messages, sentence: str) -> Messages:
    """Return the messages with a sentence, by name or as it stands, behind the last one."""
    *before, last = messages
    return [*before, {**last, "content": f"{last['content']}\n{SENTENCES.get(sentence, sentence)}"}]


class Prompted(Arm):
    """Trains under the sentence; deployment never sees it."""

    Knobs = PromptKnobs
    family = "prompt"

    @classmethod
    def must_give(cls, knobs: PromptKnobs) -> MustGive:
        return "a sentence"

    def train_prompt(self, messages: Messages) -> Messages:
        return under(messages, self.knobs.sentence)
