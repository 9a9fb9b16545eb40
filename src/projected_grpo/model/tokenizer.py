"""Tokenizer and chat template of a canonical folder: what the pipeline needs of them, and no more."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from tokenizers import Tokenizer as Core

from projected_grpo.errors import UserError
from projected_grpo.files import read_json
from projected_grpo.model.template import Messages, Template
from projected_grpo.templated import OPENING, is_templated

if TYPE_CHECKING:
    import os

SETTINGS, TEMPLATE, GENERATION = "tokenizer_config.json", "chat_template.jinja", "generation_config.json"
NO_DATE = date(2024, 7, 26)  # what Llama 3's own template says where there is no clock


class Tokenizer:
    """Text to ids and back. Raises UserError for a folder that lacks one of a canonical folder's files.

    end: the id that ends a turn; ends: all at which a row stops, it among them; pad: an id; size: of the vocabulary.
    """

    def __init__(self, folder: "str | os.PathLike"):
        folder = Path(folder)
        try:
            self.core = Core.from_file(str(folder / "tokenizer.json"))
            text = (folder / TEMPLATE).read_text(encoding="utf-8")
        except Exception as error:  # tokenizers raises nothing narrower
            raise UserError(f"{folder}: no tokenizer that can be loaded ({_line(error)})") from error
        self.core.no_truncation()
        self.core.no_padding()
        settings, generation = read_json(folder / SETTINGS), read_json(folder / GENERATION)
        special = {key: value for key, value in settings.items() if key.endswith("_token")}
        today = date.fromisoformat(settings["today"]) if "today" in settings else NO_DATE
        self.template = Template(text, special, today, str(folder / TEMPLATE))
        ends, self.size = generation.get("eos_token_id"), self.core.get_vocab_size()
        if not isinstance(ends, list) or not ends or not all(isinstance(end, int) for end in ends):
            raise UserError(f"{folder / GENERATION}: eos_token_id: {ends!r}, allowed: a list of ids")
        self.end: int = ends[0]
        self.ends = frozenset(ends)
        self.pad: int = generation.get("pad_token_id", self.end)  # type: ignore[assignment]

    def chat(self, messages: str | Messages) -> str:
        """Text of a chat up to where the assistant begins, thinking off where the template knows it.

        A string that opens with a token of the template's (`<|im_start|>`) is already templated; any other is one
        user message. Raises UserError where that token is of another model's template.
        """
        if not isinstance(messages, str):
            return self.template.render(messages)
        if not is_templated(messages):
            return self.template.render([{"role": "user", "content": messages}])
        opening = OPENING.match(messages)[0]  # type: ignore[index]
        if self.core.token_to_id(opening) is None:
            raise UserError(
                f"{self.template.source}: a prompt is templated with {opening}, which is no token of this model; "
                "allowed: a user message, or this model's own template"
            )
        return messages

    def encode_chat(self, messages: str | Messages) -> list[int]:
        """Ids of `chat(messages)`."""
        return self.encode(self.chat(messages))

    def encode(self, text: str) -> list[int]:
        """Ids of plain text; special tokens written out in it count as such, none is added."""
        return self.core.encode(text, add_special_tokens=False).ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode` of many texts at once."""
        return [found.ids for found in self.core.encode_batch_fast(list(texts), add_special_tokens=False)]

    def decode(self, ids: Sequence[int], special: bool = False) -> str:
        """Text of ids; special: with the special tokens."""
        return self.core.decode(list(ids), skip_special_tokens=not special)


def _line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]
