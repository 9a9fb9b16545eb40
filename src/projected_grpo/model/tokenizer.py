"""A checkpoint's own tokenizer and chat template: what the pipeline needs of them, and no more.

`transformers` takes seconds to import. It is needed where a checkpoint names a tokenizer class of its own; without
one, as in the small model's, the tokenizer is what stands in `tokenizer.json`, and is read by `tokenizers`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer as Core

from projected_grpo.errors import UserError
from projected_grpo.files import read_json

CLASSLESS = ("TokenizersBackend", "PreTrainedTokenizerFast")
Render = Callable[..., str]  # messages, add_generation_prompt, enable_thinking -> text


class Tokenizer:
    """Text to ids and back. Raises UserError for a folder without a tokenizer, a chat template or an end token.

    end, pad: ids; size: of the vocabulary.
    """

    def __init__(self, folder: str | Path):
        settings = Path(folder, "tokenizer_config.json")
        known = read_json(settings) if settings.is_file() else {}
        plain = known.get("tokenizer_class") in CLASSLESS and Path(folder, "chat_template.jinja").is_file()
        self.core, self._render, eos, pad = (_read if plain else _load)(Path(folder), known)
        self.size = self.core.get_vocab_size()
        turn = self.core.token_to_id("<|im_end|>")
        end = self.core.token_to_id(eos) if turn is None and eos else turn
        if end is None:
            raise UserError(f"{folder}: the tokenizer has neither <|im_end|> nor an eos_token")
        self.end: int = end
        self.ends = frozenset([end])
        self.pad: int = self.core.token_to_id(pad) if pad else end

    def chat(self, messages: str | Sequence[Mapping[str, str]]) -> str:
        """Text of a chat up to where the assistant begins, thinking off where the template knows it.

        A string that starts with `<|im_start|>` is already templated; any other is one user message.
        """
        if isinstance(messages, str):
            if messages.startswith("<|im_start|>"):
                return messages
            messages = [{"role": "user", "content": messages}]
        messages = [dict(message) for message in messages]
        return self._render(messages=messages, add_generation_prompt=True, enable_thinking=False)

    def encode_chat(self, messages: str | Sequence[Mapping[str, str]]) -> list[int]:
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


def _read(folder: Path, known: dict) -> tuple[Core, Render, str | None, str | None]:
    try:
        core = Core.from_file(str(folder / "tokenizer.json"))
    except Exception as error:  # tokenizers raises nothing narrower
        raise UserError(f"{folder}: no tokenizer that can be loaded ({_line(error)})") from error
    jinja = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)  # as transformers has it
    template = jinja.from_string((folder / "chat_template.jinja").read_text())
    return core, template.render, known.get("eos_token"), known.get("pad_token")


def _load(folder: Path, known: dict) -> tuple[Core, Render, str | None, str | None]:
    from transformers import AutoTokenizer

    try:
        inner = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    except (OSError, ValueError) as error:
        raise UserError(f"{folder}: no tokenizer that transformers can load ({_line(error)})") from error
    if not inner.chat_template:
        raise UserError(f"{folder}: the tokenizer has no chat_template")

    def render(messages: list[dict], **options) -> str:
        return inner.apply_chat_template(messages, tokenize=False, **options)

    return inner.backend_tokenizer, render, inner.eos_token, inner.pad_token


def _line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]
